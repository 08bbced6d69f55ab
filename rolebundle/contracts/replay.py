"""What `replay` answers: whether the same bundle comes out today, and if not, what changed."""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import RejectionCode

CauseKind = Literal[
    "corpus",
    "file",
    "schema",
    "generation",
    "overlay",
    "index",
    "semantic_lane",
    "vectors",
    "rerank",
    "unknown",
]
PassageChangeKind = Literal[
    "new", "gone", "selected", "rejected", "rank", "content", "metadata", "score", "reason", "notes"
]
Whereabouts = Literal["in_corpus", "document_changed", "document_gone", "not_in_corpus"]


class Cause(Contract):
    """Something that the answer depends on and that is not what it was."""

    kind: CauseKind
    before: str
    after: str
    message: str


class Outcome(Contract):
    """What became of a candidate: a rank and a score, or the code that rejected it."""

    rank: int | None = None
    score: float | None = None
    reason: RejectionCode | None = None
    notes: str | None = None


class PassageChange(Contract):
    """A candidate that did not fare as it did.

    Attributes:
        chunk_id: the candidate.
        document_id: its document; bundles name it for selected passages alone.
        kinds: what is different. `new` and `gone`: no lane proposed it then, or proposes it today.
        before: what became of it then; ``None`` for a new one.
        after: what becomes of it today; ``None`` for one that is gone.
        whereabouts: where one that is gone stands today. `document_changed`: this text is not in
            its document any more. `not_in_corpus`: the text is gone, its document is not known.
    """

    chunk_id: str
    document_id: str | None = None
    kinds: list[PassageChangeKind]
    before: Outcome | None = None
    after: Outcome | None = None
    whereabouts: Whereabouts | None = None


class Replay(Contract):
    """The answer to `replay`.

    Attributes:
        same: the two bundles are equal, the timings aside.
        same_selection: the same passages in the same order, whatever else is different.
        role_id: whose overlay governs; empty where none does.
        task_text: what was asked.
        generated_at: the time that ages are measured against, then and in the replay.
        selected_before: how many passages were selected.
        selected_after: how many are selected today.
        kept: how many of them are in both.
        differs: the fields of the bundle that are not equal.
        causes: what is not as it was.
        passages: the candidates that do not fare as they did; selected ones come first.
    """

    same: bool
    same_selection: bool
    role_id: str
    task_text: str
    generated_at: str
    selected_before: int
    selected_after: int
    kept: int
    differs: list[str]
    causes: list[Cause]
    passages: list[PassageChange]
