from rolebundle.ingest.readers.base import Reader
from rolebundle.ingest.readers.lines import read_rst

READER = Reader("rst", 5, read_rst)
