from rolebundle.ingest.readers.base import Reader
from rolebundle.ingest.readers.records import read_json

READER = Reader("json", 2, read_json)
