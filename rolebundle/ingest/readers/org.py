from rolebundle.ingest.readers.base import Reader
from rolebundle.ingest.readers.lines import read_org

READER = Reader("org", 2, read_org)
