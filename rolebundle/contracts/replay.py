"""The answer to `replay`: whether a recorded bundle is the same today, and if not, what changed.

*Before* is the recorded bundle, *after* is the bundle that the same request gives today.
"""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.terms import RejectionCode

CauseKind = Literal[
    "corpus", "file", "schema", "generation", "overlay", "index", "semantic_lane", "vectors",
    "rerank", "unknown",
]  # fmt: skip
PassageChangeKind = Literal[
    "new", "gone", "selected", "rejected", "rank", "content", "metadata", "score", "reason", "notes"
]
Whereabouts = Literal["in_corpus", "document_changed", "document_gone", "not_in_corpus"]


class Cause(Contract):
    """Something that the answer depends on and that changed. ``message`` explains the change."""

    kind: CauseKind
    before: str
    after: str
    message: str


class Outcome(Contract):
    """The result for a candidate: rank and score if selected, code and notes if rejected."""

    rank: int | None = None
    score: float | None = None
    reason: RejectionCode | None = None
    notes: str | None = None


class PassageChange(Contract):
    """A candidate whose result differs between the two bundles.

    Attributes:
        chunk_id: id of the candidate.
        document_id: its document; missing if it is not known, because bundles have the document
            only of selected passages.
        kinds: what differs. `new`: the candidate is only in the second bundle. `gone`: it is only
            in the first one.
        before: the recorded result; missing for a `new` candidate.
        after: the result today; missing for a `gone` candidate.
        whereabouts: whether the chunk of a `gone` candidate still exists. `in_corpus`: it exists,
            but no lane proposes it. `document_changed`: its document exists, but has other chunks.
            `document_gone`: its document does not exist. `not_in_corpus`: the chunk does not
            exist, and its document is not known.
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
        same: whether the two bundles are equal, timings aside.
        same_selection: whether the same passages are selected in the same order.
        role_id: the role; empty if there was none.
        task_text: the task.
        generated_at: the time that ages are measured against in both bundles, ISO 8601 in UTC.
        selected_before: number of passages that were selected.
        selected_after: number of passages that are selected today.
        kept: number of passages that are selected in both bundles.
        differs: names of the fields of the bundle that differ.
        causes: why the bundles differ.
        passages: the candidates whose result differs, selected ones first.
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
