"""The answers of the commands that write or try settings: `init`, `overlay new | try`."""

from typing import Literal

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import CorpusState, Fallback
from rolebundle.contracts.terms import RejectionCode

DraftState = Literal["written", "planned", "kept"]
"""``written``; ``planned``: only proposed (``--dry-run``); ``kept``: it was there already."""


class DraftFile(Contract):
    """A file of settings. ``content`` is its text; empty if it was kept."""

    path: str
    state: DraftState
    content: str = ""


class InitReport(Contract):
    """`init`.

    Attributes:
        folder: the folder that was looked at.
        files: number of files that an ingest would read.
        left_out: number of files and folders that an ingest leaves out by their name or size, by
            code.
        sources: number of files by source id, as the proposed manifest declares them; without files
            that declare their source. Empty if a manifest was kept.
        document_types: number of files by document type, as the proposed manifest declares them;
            without files of no type. Empty if a manifest was kept.
        drafts: the files that were written, or would be.
        remarks: what a person should know.
        next: the next commands.
    """

    folder: str
    files: int
    left_out: dict[str, int]
    sources: dict[str, int]
    document_types: dict[str, int]
    drafts: list[DraftFile]
    remarks: list[str] = []
    next: list[str]


class OverlayDraftReport(Contract):
    """`overlay new`.

    Attributes:
        role_id: the role.
        draft: the file.
        remarks: what a person should know.
        next: the next commands.
    """

    role_id: str
    draft: DraftFile
    remarks: list[str] = []
    next: list[str]


class TriedPassage(Contract):
    """A passage that is selected with the role or without it.

    Attributes:
        rank_without: its rank without the role, from 1; ``None`` if it is not selected.
        rank_with: its rank with the role, from 1; ``None`` if it is not selected.
        score_without: its final score without the role; ``None`` if it is not selected.
        score_with: its final score with the role; ``None`` if it is not selected.
        moved_by: the rules and terms of the overlay that raised or lowered it.
        code: why the role does not get it; ``None`` if it does, or if no lane proposed it.
        notes: explanation of the code.
    """

    chunk_id: str
    document_id: str
    source_id: str
    title: str | None = None
    locator: str | None = None
    rank_without: int | None = None
    rank_with: int | None = None
    score_without: float | None = None
    score_with: float | None = None
    moved_by: list[str]
    code: RejectionCode | None = None
    notes: str | None = None


class OverlayTrial(Contract):
    """`overlay try`: the answers to one task with a role and without one.

    Attributes:
        generated_at: the time that ages are measured against, ISO 8601 in UTC.
        role_share: the share of the role's terms in the final score of this task, in [0, 1].
        overlap: Jaccard index of the selected passages, in [0, 1].
        rules_used: number of passages of the role's answer by rule or term of the overlay.
        passages: by rank with the role, then without it.
        fallback: the verdict on the role's answer.
    """

    task_text: str
    role_id: str
    overlay_digest: str
    generated_at: str
    corpus: CorpusState | None = None
    role_share: float
    overlap: float
    rules_used: dict[str, int]
    passages: list[TriedPassage]
    fallback: Fallback | None = None
