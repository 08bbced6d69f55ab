"""The approximate index of one part of an embedding index, by ``vec1``, which comes with apsw.

It only proposes neighbours; their cosines are computed from the vectors themselves. Its recall is
measured against the exact search when it is built. The exact search is used instead if the
extension is missing, if too many vectors changed since, or if the recall is too low. It can always
be rebuilt from the vectors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple

from rolebundle.storage.corpus import Corpus

MIN_RECALL = 0.95
"""Minimum recall of the exact top 50 in a sample. With a lower recall it is not used."""
PROBES = 32
"""Default number of buckets that are searched."""
MAX_CHANGED_SHARE = 0.2
"""If a larger share of the vectors has changed, its buckets no longer fit: it is not used."""
MIN_VECTORS = 20_000
"""With fewer vectors the exact search takes only a few milliseconds."""

_EXTENSION = "vec1"


class ApproximateState(NamedTuple):
    """What the corpus records of an approximate index.

    ``recall`` is its share of the exact neighbours, ``built`` the number of vectors that it was
    built from, and ``changed`` how many were added or removed since.
    """

    buckets: int
    probes: int
    recall: float
    built: int
    changed: int

    @classmethod
    def read(cls, text: str) -> ApproximateState | None:
        """The state from the corpus's JSON, or ``None`` if there is none or it is damaged."""
        try:
            state = cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError):
            return None
        return state if [*map(type, state)] == [int, int, float, int, int] else None

    def write(self) -> str:
        """The JSON that the corpus keeps."""
        return json.dumps(self._asdict())

    @property
    def is_stale(self) -> bool:
        """Whether too many vectors have changed since its buckets were trained."""
        return self.changed > MAX_CHANGED_SHARE * self.built


class IndexPart(NamedTuple):
    """The part of an embedding index that has the vectors of one compartment.

    ``vectors`` is their number. ``approximate`` is the state of the approximate index of these
    vectors as JSON, or empty if there is none.
    """

    index_id: int
    compartment: int
    dimensions: int
    vectors: int
    approximate: str

    @property
    def table(self) -> str:
        """The vec0 table of its vectors."""
        return f"vectors_{self.index_id}_{self.compartment}"

    @property
    def approximate_table(self) -> str:
        """The vec1 table of its approximate index."""
        return f"fast_{self.index_id}_{self.compartment}"


def is_available(corpus: Corpus) -> bool:
    """Whether this build of apsw has the extension. If so, load it."""
    return corpus.load_bundled_extension(_EXTENSION)


def stale_reason(corpus: Corpus, part: IndexPart) -> str:
    """Why the approximate index of a part is not used; empty if it is, or if there is none."""
    if not part.approximate:
        return ""
    state = ApproximateState.read(part.approximate)
    if state is None:
        return "the approximate index's record is damaged"
    if state.is_stale:
        return (
            f"{state.changed} of {state.built} vectors changed since the approximate index was "
            "built"
        )
    if state.recall < MIN_RECALL:
        return f"the approximate index found only {state.recall:.2f} of the exact neighbours"
    if not is_available(corpus):
        return f"this build of apsw has no {_EXTENSION} extension"
    if not corpus.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", (part.approximate_table,)):
        return "the approximate index's table is gone"
    return ""


def is_usable(corpus: Corpus, part: IndexPart) -> bool:
    """Whether a part has an approximate index that can propose neighbours."""
    return bool(part.approximate) and part.vectors > 0 and not stale_reason(corpus, part)


def nearest(corpus: Corpus, part: IndexPart, vector: bytes, k: int) -> list[int]:
    """Rowids of about the ``k`` nearest vectors."""
    state = ApproximateState.read(part.approximate)
    settings = {"k": k, "nprobe": state.probes if state else PROBES}
    found = f"SELECT rowid FROM {part.approximate_table}(?, ?)"
    return corpus.column(found, (vector, json.dumps(settings)))


def build(corpus: Corpus, part: IndexPart) -> None:
    """Copy the vectors, train the buckets and sort the vectors into them.

    Call it inside a write transaction. It is used after :func:`store_state`.
    """
    table = part.approximate_table
    corpus.run(f"DROP TABLE IF EXISTS {table}")
    create_table(corpus, part)
    corpus.run(
        f"INSERT INTO {table} (rowid, vec) SELECT e.chunk, e.vector FROM embedded e "
        "CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d ON d.id = c.document "
        "WHERE e.index_id = ? AND d.compartment = ?",
        (part.index_id, part.compartment),
    )
    settings = json.dumps({"nbucket": bucket_count(part.vectors), "quantizer": "none"})
    model = corpus.value(f"SELECT vec1_train(vec, ?) FROM {table}", (settings,))
    corpus.run(f"INSERT INTO {table} (cmd, arg) VALUES ('rebuild', ?)", (model,))


def create_table(corpus: Corpus, part: IndexPart) -> None:
    """Create the empty vec1 table of a part. The extension must be loaded."""
    corpus.run(f"CREATE VIRTUAL TABLE {part.approximate_table} USING vec1(vec)")


def bucket_count(count: int) -> int:
    """The usual number of inverted lists: the square root of the number of vectors."""
    return max(1, isqrt(count))


def store_state(corpus: Corpus, part: IndexPart, state: ApproximateState | None) -> None:
    """Record the state of the approximate index. With ``None`` it is not used any more."""
    corpus.run(
        "UPDATE embedding_share SET fast = ? WHERE index_id = ? AND compartment = ?",
        (state.write() if state else "", part.index_id, part.compartment),
    )


def drop(corpus: Corpus, part: IndexPart) -> None:
    """Drop the approximate index of a part, if there is one."""
    if _stored_state(corpus, part):
        if is_available(corpus):
            corpus.run(f"DROP TABLE IF EXISTS {part.approximate_table}")
        store_state(corpus, part, None)


def add_vectors(corpus: Corpus, part: IndexPart, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Add vectors to the approximate index, if there is one."""
    if _record_change(corpus, part, len(vectors)):
        corpus.insert(f"{part.approximate_table} (rowid, vec)", vectors)


def remove_vectors(corpus: Corpus, part: IndexPart, rowids: Sequence[int]) -> None:
    """Remove vectors from the approximate index, if there is one."""
    if _record_change(corpus, part, len(rowids)):
        corpus.run_many(
            f"DELETE FROM {part.approximate_table} WHERE rowid = ?", ((rowid,) for rowid in rowids)
        )


def _stored_state(corpus: Corpus, part: IndexPart) -> str:
    chosen = "SELECT fast FROM embedding_share WHERE index_id = ? AND compartment = ?"
    return str(corpus.value(chosen, (part.index_id, part.compartment)) or "")


def _record_change(corpus: Corpus, part: IndexPart, count: int) -> bool:
    """Record a change of so many vectors; False if there is no index that can follow it."""
    stored = _stored_state(corpus, part)
    state = ApproximateState.read(stored)
    can_follow = state is not None and is_available(corpus)
    if state is not None and can_follow:
        store_state(corpus, part, state._replace(changed=state.changed + count))
    elif stored:
        store_state(corpus, part, None)  # So it is not used any more.
    return can_follow
