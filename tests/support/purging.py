"""Purges of a corpus that a test has open for writing."""

from collections.abc import Sequence

from rolebundle.admin import purges
from rolebundle.contracts.upkeep import Receipt
from rolebundle.policy.audit import Recorder
from rolebundle.storage.corpus import Corpus


def purge(corpus: Corpus, names: Sequence[str]) -> Receipt:
    return purges.purge(corpus, Recorder(corpus.path), purges.Selection(names))


def finish_purges(corpus: Corpus) -> list[Receipt]:
    return purges.finish_purges(corpus, Recorder(corpus.path))
