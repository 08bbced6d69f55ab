"""What publications carried: a purge raises those that held it, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import CorpusCorrupt
from rolebundle.storage.corpus import Corpus, corpus_counts
from rolebundle.storage.opening import open_writer
from rolebundle.storage.publications import (
    Publication,
    carried_hash,
    decision_name,
    publications,
    raise_purge_generations,
    save_publication,
    with_carried,
)
from support.corpora import build, scratch_folder
from support.publications import publication_of

_NAMES = st.sets(st.sampled_from([*"abcdef", decision_name(("shared", 1))]))


def save(corpus: Corpus, known: list[Publication]) -> None:
    with corpus.writing():
        corpus.run("DELETE FROM publication")
        for publication in known:
            save_publication(corpus, publication)


def test_a_purge_raises_exactly_the_publications_that_carried_it() -> None:
    with scratch_folder() as folder, open_writer(build(folder, [])) as corpus:
        corpus_id = corpus_counts(corpus).corpus_id

        @given(st.lists(_NAMES, max_size=4), _NAMES)
        def check(carried: list[set[str]], purged: set[str]) -> None:
            known = [
                with_carried(publication_of(f"/t{n}"), corpus_id, names)
                for n, names in enumerate(carried)
            ]
            save(corpus, known)
            with corpus.writing():
                raised = raise_purge_generations(corpus, purged)
            assert [publication.target for publication in raised] == [
                f"/t{n}" for n, names in enumerate(carried) if names & purged
            ]
            for before, after, names in zip(known, publications(corpus), carried, strict=True):
                expected = with_carried(publication_of(before.target), corpus_id, names - purged)
                assert after == expected._replace(
                    purge_generation=before.purge_generation + bool(names & purged)
                )
                assert after.is_outdated == bool(names & purged)

        check()


def test_hashes_are_sorted_and_each_is_there_once() -> None:
    names = ["a", "b", "c", "decision:shared-1"]
    known = with_carried(publication_of("/t"), "corpus", names[:2])
    known = with_carried(known, "corpus", names[1:])
    assert known.carried == b"".join(sorted(carried_hash("corpus", name) for name in names))


def test_hashes_of_two_corpora_cannot_be_compared() -> None:
    assert carried_hash("one", "a") != carried_hash("two", "a")
    assert len(carried_hash("x" * 100, "a")) == 8


def test_a_damaged_record_is_reported(tmp_path: Path) -> None:
    with open_writer(build(tmp_path, [])) as corpus:
        save(corpus, [publication_of("/t")._replace(carried=b"seven..")])
        with pytest.raises(CorpusCorrupt), corpus.writing():
            raise_purge_generations(corpus, ["a"])
