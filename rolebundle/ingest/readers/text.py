from rolebundle.ingest.readers.base import Reader
from rolebundle.ingest.readers.lines import read_text

READER = Reader("text", 4, read_text)
