"""The request and the answer of `verify`: a draft is checked against passages of the corpus."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from rolebundle.contracts.base import Contract, optional, required
from rolebundle.contracts.overlay import RoleId
from rolebundle.contracts.request import AgentName, Milliseconds, Moment, References

MAX_DRAFT_CHARACTERS = 1_000_000

Check = Literal["quotes", "citations", "figures", "names", "wording", "coverage", "judge"]
"""A check that a request can require."""
CheckName = Literal[Check, "sources", "publish", "deadline"]
FindingCode = Literal[
    "exact", "normalized", "misattributed", "near", "cut_short", "absent", "cited",
    "unknown_citation", "wrong_place", "unrelated_citation", "unchecked_language",
    "figure_found", "rounded", "computed", "unsupported_figure", "unknown_name", "covered",
    "uncovered", "differs", "judged_unsupported", "unknown_passage", "changed_passage",
    "superseded_source", "old_source", "stale_source", "untrusted_source", "flagged_source",
    "rejected_source", "disputed_source", "secret_in_draft", "confidential_source",
    "not_checked",
]  # fmt: skip
Outcome = Literal["failed", "check", "clean"]
"""Something is wrong; something could not be confirmed; neither."""
Verdict = Literal[Outcome, "nothing_to_check"]
VerifyDetail = Literal["compact", "full"]


class VerifyRequest(Contract):
    """A draft, and what it is checked against."""

    draft: Annotated[str, Field(max_length=MAX_DRAFT_CHARACTERS)] = required(
        "The text to check: an answer, a report, a message."
    )
    bundle: dict[str, Any] | None = optional(
        "The bundle that the draft was written from. Its passages are read again from the corpus."
    )
    chunk_ids: References | None = optional(
        "path:start-end or chunk_ids of its passages; [1] in the draft is the first. "
        "Without a bundle and chunk_ids the whole visible corpus is the evidence."
    )
    role: RoleId | None = optional(
        "The role that the draft was written in. Its policy applies. Default: the bundle's."
    )
    agent: AgentName = None
    require: list[Check] | None = optional(
        "The checks that decide about the verdict: quotes, citations, figures, names, wording (no "
        "near copy of a sentence turns its sense), coverage (each sentence has its words in a "
        "passage), judge (two answers `no`). Default: all but coverage and judge."
    )
    publish: Literal["public", "group", "internal"] | None = optional(
        "Also find secrets and passages above this level."
    )
    redact: bool = optional("Leave out what is not clean, instead of marking it.", False)
    now: Moment | None = optional(
        "ISO 8601 time that ages are measured against. Default: the current time."
    )
    detail: VerifyDetail | None = optional(
        "How many findings come back as JSON. compact: those that are not clean or have a remedy. "
        "full: all."
    )
    deadline_ms: Milliseconds | None = optional(
        "Stop after so many milliseconds, with an error that can be retried. Default: "
        "what is not checked within 45 seconds is `not_checked`, which fails."
    )

    @model_validator(mode="after")
    def _check_evidence(self) -> Self:
        if self.bundle is not None and self.chunk_ids is not None:
            raise ValueError("give bundle or chunk_ids, not both")
        return self


class Span(Contract):
    """A range of the draft in characters: the first one, from 0, and the one after the last.

    An empty range at 0 is about the whole draft.
    """

    start: int
    end: int


class Finding(Contract):
    """What one check found at one place of the draft.

    Attributes:
        check: the check.
        code: the outcome.
        verdict: what it does to the verdict: ``failed``, ``check``, or nothing.
        fails: whether that is ``failed``.
        span: where in the draft.
        text: the draft's text there; at most 300 characters; empty for a secret.
        chunk_id: the passage that it was checked against; missing if there is none.
        locator: its place in the corpus.
        true_text: what the passage says there.
        note: the difference, or the reason, in words.
        remedy: what to change in the draft; missing if nothing must be changed.
    """

    check: CheckName
    code: FindingCode
    verdict: Outcome
    fails: bool
    span: Span
    text: str
    chunk_id: str | None = None
    locator: str | None = None
    true_text: str | None = None
    note: str | None = None
    remedy: str | None = None


class CheckedPassage(Contract):
    """A passage that the draft was checked against. ``number`` is what ``[number]`` cites."""

    number: int | None = None
    chunk_id: str
    locator: str


class JudgeOpinion(Contract):
    """What a model thinks of a covered sentence. It counts only if `judge` is required."""

    span: Span
    supported: bool | None
    answer: str


class Verification(Contract):
    """The answer to `verify`.

    Attributes:
        verdict: ``failed``: something is wrong. ``check``: something could not be confirmed.
            ``clean``: each quote, figure and name stands in what is cited; that proves nothing
            about the rest. ``nothing_to_check``: there was nothing to check, or nothing to check it
            against.
        message: what was checked, and what was not.
        counts: number of findings by code.
        findings: in the order of the draft.
        uncited_sentences: sentences with content and without a citation.
        validated_draft: the draft with what is not clean removed or marked; missing if all of it is
            clean.
        passages: the passages that it was checked against; empty for the whole corpus.
        judge: the model that gave opinions, as ``PROVIDER:MODEL``.
        judge_problem: why some sentences have no opinion.
    """

    verdict: Verdict
    message: str
    counts: dict[FindingCode, int]
    findings: list[Finding]
    uncited_sentences: list[Span] = []
    validated_draft: str | None = None
    passages: list[CheckedPassage] = []
    judge: str | None = None
    judge_problem: str | None = None
    opinions: list[JudgeOpinion] = []
