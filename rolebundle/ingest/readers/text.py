from rolebundle.ingest.readers.base import Reader
from rolebundle.ingest.readers.lines import read_text

READER = Reader("text", 3, read_text)
