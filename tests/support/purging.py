"""Purges of a corpus that a test has open for writing."""

from rolebundle.admin import purges
from rolebundle.admin.purges import PurgeSelection
from rolebundle.contracts.upkeep import Receipt
from rolebundle.policy.audit import Recorder
from rolebundle.storage.corpus import Corpus


def purge(corpus: Corpus, selection: PurgeSelection) -> Receipt:
    return purges.purge(corpus, selection, Recorder(corpus.path))


def finish_purges(corpus: Corpus) -> list[Receipt]:
    return purges.finish_purges(corpus, Recorder(corpus.path))
