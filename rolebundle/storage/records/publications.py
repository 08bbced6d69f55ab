"""The publisher's record of what it published to each target."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from rolebundle.storage.connection import Corpus
from rolebundle.storage.corpus_state import corpus_counts
from rolebundle.storage.files.stored_values import damaged
from rolebundle.storage.records.decisions import DecisionKey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HASH_SIZE = 8


class Publication(NamedTuple):
    """What was published to one target; see ``migrations/0010_replicas.sql``."""

    target: str
    agent: str = ""
    visibility: str = ""
    publisher: str = ""
    key_id: str = ""
    generation: int = 0
    purge_generation: int = 0
    content_digest: str = ""
    file_digest: str = ""
    published_at: str = ""
    refuses_at: str = ""
    published_purges: int = 0
    carried: bytes = b""

    @property
    def is_outdated(self) -> bool:
        """Whether the last replica that was published may hold something that was purged."""
        return self.published_purges < self.purge_generation


def publications(corpus: Corpus) -> list[Publication]:
    """Every publication, ordered by target."""
    return corpus.select(Publication, "publication ORDER BY target")


def find_publication(corpus: Corpus, target: str) -> Publication | None:
    """The publication to a target, or ``None``."""
    return next((found for found in publications(corpus) if found.target == target), None)


def save_publication(corpus: Corpus, publication: Publication) -> None:
    """Store a publication. Call it inside a write transaction."""
    corpus.put("publication", publication)


def delete_publication(corpus: Corpus, target: str) -> None:
    """Forget a target. Call it inside a write transaction."""
    corpus.run("DELETE FROM publication WHERE target = ?", (target,))


def decision_name(decision: DecisionKey) -> str:
    """The name of a decision in ``carried``. A document's name there is its id."""
    return f"decision:{decision[0]}-{decision[1]}"


def carried_names(replica: Corpus) -> list[str]:
    """The names of all that a replica holds, as in ``carried``."""
    documents = replica.rows("SELECT document_id FROM document")
    decided = replica.rows("SELECT scope, number FROM decision")
    return [*(name for (name,) in documents), *map(decision_name, decided)]


def carried_hash(corpus_id: str, name: str) -> bytes:
    """The hash of a name in ``carried``, 8 bytes. The same name has others in other corpora."""
    key = corpus_id.encode()[: blake2b.MAX_KEY_SIZE]
    return blake2b(name.encode(), digest_size=_HASH_SIZE, key=key).digest()


def publication_id(corpus_id: str, target: str) -> str:
    """The identity of a publication in its manifests."""
    return carried_hash(corpus_id, target).hex()


def with_carried(publication: Publication, corpus_id: str, names: Iterable[str]) -> Publication:
    """The publication with these names added to what it ever held.

    Store it before a replica that holds them is written: a purge must find the names even if the
    publish is killed.

    Args:
        publication: the publication.
        corpus_id: identity of the publisher's corpus.
        names: ids of documents, and names of decisions (:func:`decision_name`).
    """
    import numpy as np

    carried = np.union1d(_hashes(publication), _hash_all(corpus_id, names))
    return publication._replace(carried=_bytes_of(carried))


def carrying(corpus: Corpus, names: Collection[str]) -> list[Publication]:
    """The publications that ever held one of these names, ordered by target."""
    present = publications(corpus)
    if not present:
        return []
    hashes = _hash_all(corpus_counts(corpus).corpus_id, names)
    return [publication for publication in present if _places(_hashes(publication), hashes).size]


def raise_purge_generations(corpus: Corpus, names: Collection[str]) -> list[Publication]:
    """Raise the purge generation of each publication that ever held one of these names.

    The hashes of the names are removed, because they would show what was purged to whoever guesses
    a name. Call it inside the transaction of the purge.

    Args:
        corpus: the publisher's corpus.
        names: what is purged, as in :func:`with_carried`.

    Returns:
        The publications that were raised, ordered by target.
    """
    affected = carrying(corpus, names)
    if not affected:
        return []
    import numpy as np

    purged = _hash_all(corpus_counts(corpus).corpus_id, names)
    raised = []
    for publication in affected:
        carried = _hashes(publication)
        remaining = np.delete(carried, _places(carried, purged))
        raised.append(
            publication._replace(
                purge_generation=publication.purge_generation + 1, carried=_bytes_of(remaining)
            )
        )
        save_publication(corpus, raised[-1])
    return raised


def _hashes(publication: Publication) -> NDArray[np.uint64]:
    """The hashes in ``carried``, as numbers.

    Raises:
        CorpusCorrupt: it is damaged.
    """
    if len(publication.carried) % _HASH_SIZE:
        raise damaged("a publication")
    return _numbers_in(publication.carried)


def _places(carried: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    """The places of those of the hashes that are in ``carried``, which is sorted."""
    places = carried.searchsorted(hashes)
    is_within = places < len(carried)
    places, hashes = places[is_within], hashes[is_within]
    found: NDArray[np.intp] = places[carried[places] == hashes]
    return found


def _hash_all(corpus_id: str, names: Iterable[str]) -> NDArray[np.uint64]:
    return _numbers_in(b"".join(carried_hash(corpus_id, name) for name in names))


# As big-endian numbers the hashes have the order of their bytes.
def _numbers_in(hashes: bytes) -> NDArray[np.uint64]:
    import numpy as np

    return np.frombuffer(hashes, dtype=">u8").astype(np.uint64)


def _bytes_of(numbers: NDArray[np.uint64]) -> bytes:
    return numbers.astype(">u8").tobytes()
