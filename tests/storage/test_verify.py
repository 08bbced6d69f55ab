"""What is verified before an answer is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage import lexical_index
from rolebundle.storage.check import verify_lexical_indexes
from rolebundle.storage.compartments import searchable_compartments
from rolebundle.storage.opening import open_reader, open_writer
from support.corpora import build, document


def test_an_index_with_as_many_chunks_but_other_words_is_damaged(tmp_path: Path) -> None:
    db = build(tmp_path, [document("a", ["token"]), document("b", ["rotation"])])
    with open_reader(db) as corpus:
        verify_lexical_indexes(corpus)
    with open_writer(db) as corpus, corpus.writing():
        # The index is built of other texts than the corpus has afterwards.
        [compartment] = searchable_compartments(corpus)
        corpus.run("UPDATE chunk SET content = 'another'")
        lexical_index.rebuild(corpus, compartment.id)
        corpus.run("UPDATE chunk SET content = 'token'")
    with open_reader(db) as corpus, pytest.raises(CorpusCorrupt) as refused:
        verify_lexical_indexes(corpus)
    assert refused.value.code == "damaged_index"
    assert refused.value.message.startswith(str(db))
