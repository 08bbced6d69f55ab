from rolebundle.ingest.readers.base import Reader
from rolebundle.ingest.readers.records import read_jsonl

READER = Reader("jsonl", 5, read_jsonl)
