from rolebundle.ingest.readers.base import Reader
from rolebundle.ingest.readers.lines import read_rst

READER = Reader("rst", 4, read_rst)
