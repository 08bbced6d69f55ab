"""The fast companion of vectors: IVF through ``vec1``, which ships inside apsw.

Approximate, and therefore never the truth: what it proposes is measured again with the vectors of
the index, it is checked against the exact search when it is built, and an index answers without it
where the extension is missing, where too much has changed since, or where it was not good enough.
It can always be rebuilt from the vectors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

from rolebundle.storage.connection import Corpus

LEAST_RECALL = 0.95
"""Under this share of the exact top 50, sampled when it is built, it is not used."""
PROBES = 32
"""Buckets that a search looks into."""
STALE_SHARE = 0.2
"""Its buckets were trained on other vectors once this share of them has changed."""
WORTH_VECTORS = 20_000
"""Below this many the exact search takes a few milliseconds, and nothing is gained."""

_EXTENSION = "vec1"


@dataclass(frozen=True, slots=True)
class FastState:
    """What is known of a fast companion."""

    buckets: int
    probes: int
    recall: float
    built: int
    changed: int

    @classmethod
    def read(cls, text: str) -> FastState | None:
        """The state that the corpus keeps as JSON; ``None`` where there is no companion."""
        if not text:
            return None
        try:
            state = cls(**json.loads(text))
        except (ValueError, TypeError, RecursionError):
            # Written by nobody we know: then it may not answer.
            return None
        counts = (state.buckets, state.probes, state.built, state.changed)
        known = all(type(count) is int for count in counts) and type(state.recall) is float
        return state if known else None

    def write(self) -> str:
        """As the corpus keeps it."""
        return json.dumps(
            {
                "buckets": self.buckets,
                "probes": self.probes,
                "recall": self.recall,
                "built": self.built,
                "changed": self.changed,
            }
        )

    @property
    def stale(self) -> bool:
        """Whether too much has changed since its buckets were trained."""
        return self.changed > STALE_SHARE * self.built


class Share(NamedTuple):
    """What an embedding index has of one compartment.

    ``fast`` describes the fast companion of its vectors, as JSON, or is empty.
    """

    index_id: int
    compartment: int
    dimensions: int
    vectors: int
    fast: str

    @property
    def table(self) -> str:
        """The vec0 table of its vectors."""
        return f"vectors_{self.index_id}_{self.compartment}"

    @property
    def fast_table(self) -> str:
        """The vec1 table beside them."""
        return f"fast_{self.index_id}_{self.compartment}"


def available(corpus: Corpus) -> bool:
    """Whether this build of apsw carries the extension; loads it where it does."""
    return corpus.load_extra(_EXTENSION)


def doubt(corpus: Corpus, share: Share) -> str:
    """Why a share that has a companion answers without it; empty where it does not have to."""
    if not share.fast:
        return ""
    state = FastState.read(share.fast)
    if state is None:
        return "the fast index's record is damaged"
    if state.stale:
        return f"{state.changed} of {state.built} vectors changed since the fast index was built"
    if state.recall < LEAST_RECALL:
        return f"the fast index found only {state.recall:.2f} of the exact neighbours"
    if not available(corpus):
        return f"this build of apsw has no {_EXTENSION} extension"
    if not corpus.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", (share.fast_table,)):
        return "the fast index's table is gone"
    return ""


def may_answer(corpus: Corpus, share: Share) -> bool:
    """Whether the companion of a share may propose neighbours."""
    return bool(share.fast) and share.vectors > 0 and not doubt(corpus, share)


def nearest(corpus: Corpus, share: Share, vector: bytes, k: int) -> list[int]:
    """Rowids of about the ``k`` nearest vectors."""
    state = FastState.read(share.fast)
    probes = state.probes if state else PROBES
    found = corpus.rows(
        f"SELECT rowid FROM {share.fast_table}(?, ?)",
        (vector, json.dumps({"k": k, "nprobe": probes})),
    )
    return [rowid for (rowid,) in found]


def build(corpus: Corpus, share: Share) -> None:
    """Copy the vectors, train the buckets and sort the vectors into them.

    Call it inside a write transaction; :func:`record` makes it answer.
    """
    table = share.fast_table
    corpus.run(f"DROP TABLE IF EXISTS {table}")
    corpus.run(f"CREATE VIRTUAL TABLE {table} USING vec1(vec)")
    corpus.run(
        f"INSERT INTO {table} (rowid, vec) SELECT e.chunk, e.vector FROM embedded e "
        "CROSS JOIN chunk c ON c.id = e.chunk CROSS JOIN document d ON d.id = c.document "
        "WHERE e.index_id = ? AND d.compartment = ?",
        (share.index_id, share.compartment),
    )
    settings = json.dumps({"nbucket": buckets_for(share.vectors), "quantizer": "none"})
    model = corpus.value(f"SELECT vec1_train(vec, ?) FROM {table}", (settings,))
    corpus.run(f"INSERT INTO {table} (cmd, arg) VALUES ('rebuild', ?)", (model,))


def buckets_for(count: int) -> int:
    """The usual number of inverted lists: the square root of the number of vectors."""
    return max(1, isqrt(count))


def record(corpus: Corpus, share: Share, state: FastState | None) -> None:
    """Note what is known of the companion; from then on it may answer, or with ``None`` not."""
    corpus.run(
        "UPDATE embedding_share SET fast = ? WHERE index_id = ? AND compartment = ?",
        (state.write() if state else "", share.index_id, share.compartment),
    )


def remove(corpus: Corpus, share: Share) -> None:
    """Drop the companion, where there is one."""
    if not _known(corpus, share):
        return
    if available(corpus):
        corpus.run(f"DROP TABLE IF EXISTS {share.fast_table}")
    record(corpus, share, None)


def add(corpus: Corpus, share: Share, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Keep the companion in step with vectors that were added."""
    if _changing(corpus, share, len(vectors)):
        corpus.run_many(f"INSERT INTO {share.fast_table} (rowid, vec) VALUES (?, ?)", list(vectors))


def take_out(corpus: Corpus, share: Share, rowids: Sequence[int]) -> None:
    """Keep the companion in step with vectors that were removed."""
    if _changing(corpus, share, len(rowids)):
        corpus.run_many(
            f"DELETE FROM {share.fast_table} WHERE rowid = ?", ((rowid,) for rowid in rowids)
        )


def _known(corpus: Corpus, share: Share) -> str:
    return str(
        corpus.value(
            "SELECT fast FROM embedding_share WHERE index_id = ? AND compartment = ?",
            (share.index_id, share.compartment),
        )
        or ""
    )


def _changing(corpus: Corpus, share: Share, count: int) -> bool:
    """Count a change of a companion; False where there is none that can be kept in step."""
    known = _known(corpus, share)
    if not known:
        return False
    state = FastState.read(known)
    if state is None or not available(corpus):
        # It can no longer be kept in step, so it must not answer.
        record(corpus, share, None)
        return False
    changed = FastState(
        state.buckets, state.probes, state.recall, state.built, state.changed + count
    )
    record(corpus, share, changed)
    return True
