"""Checks that a corpus is consistent: contents, lexical index and vectors agree."""

from pathlib import Path
from typing import Any

from rolebundle.policy.access import deny_matcher
from rolebundle.storage.check import find_problems
from rolebundle.storage.corpus import Corpus
from rolebundle.storage.opening import open_reader
from rolebundle.storage.writing import open_writer
from support.compartments import assert_compartments_are_separate


def assert_sound(path: Path) -> None:
    """Assert that all parts of a corpus agree. An empty file is accepted."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with open_writer(path) as corpus:
        assert find_problems(corpus, deny_matcher(corpus)) == []
        assert_compartments_are_separate(corpus)


def contents(path: Path) -> dict[str, Any]:
    """Return the contents of a corpus, without what depends on the order of writing."""
    with open_reader(path) as corpus:
        return {
            "chunks": corpus.rows(
                "SELECT chunk_id, content, content_hash, start_line, end_line, tags, headings "
                "FROM chunk ORDER BY chunk_id"
            ),
            "documents": corpus.rows(
                "SELECT document_id, title, uri, trust_tier, tags FROM document ORDER BY 1"
            ),
            "files": corpus.rows("SELECT path, content_hash, recipe FROM file ORDER BY path"),
            "counted": corpus.rows("SELECT documents, chunks FROM corpus_state"),
            "vectors": corpus.rows(
                "SELECT c.chunk_id, e.vector FROM embedded e JOIN chunk c ON c.id = e.chunk "
                "ORDER BY c.chunk_id"
            ),
            "compartments": corpus.rows(
                "SELECT scope, sensitivity, denied, quarantined, documents, chunks FROM compartment "
                "ORDER BY scope, sensitivity, denied, quarantined"
            ),
        }


def paths_in(corpus: Corpus) -> set[str]:
    """Return the paths of the files in a corpus."""
    return {path for (path,) in corpus.rows("SELECT path FROM file")}
