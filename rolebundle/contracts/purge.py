"""The answers of `corpus purge`, and its receipt: how much was erased, but not what."""

from typing import Literal

from rolebundle.contracts.base import Contract

PurgeState = Literal["pending", "done"]
Obstacle = Literal["", "reader", "writer", "disk", "publisher", "staging"]


class PublishedCopy(Contract):
    """The last replica that was published to a target, and may hold what is purged.

    Whoever pulled it keeps it until the next `replica pull` after ``next_step``.

    Attributes:
        target: where it was published to.
        agent: for whom; empty: for everyone who can read it.
        generation: of the replica.
        published_at: ISO 8601 in UTC, as all times; empty if the publish that built the file anew
            was not completed.
        refuses_at: from then on copies that were not renewed give no answers. Their bytes stay.
        next_step: the command that replaces it.
    """

    target: str
    agent: str
    generation: int
    published_at: str
    refuses_at: str
    next_step: str


class Receipt(Contract):
    """How much was erased. No field is derived from the erased content: the id is random.

    ``publications`` comes from the publisher's own records, and is not stored with the receipt.

    Attributes:
        purged_at: ISO 8601 in UTC.
        documents: number of erased documents; ``chunks`` and ``vectors`` likewise.
        state: ``pending`` means that nothing erased can be retrieved any more, but copies of its
            bytes may still be in the corpus file or the files beside it. ``done`` means that none
            are.
        waiting_for: what prevented the erasing of these copies; empty if ``done``.
        publications: those that ever held something of it. Of a purge that is completed later,
            those that were not renewed since any purge of what they held.
    """

    id: str
    purged_at: str
    documents: int
    chunks: int
    vectors: int
    state: PurgeState
    waiting_for: Obstacle = ""
    publications: list[PublishedCopy] = []


class PurgeResult(Contract):
    """`corpus purge`.

    Attributes:
        receipts: one for each purge that was done or is pending.
        returning: files on disk that the next ingest would add again.
        backups: backup files that may still contain the documents.
        backups_deleted: how many backups were deleted.
    """

    receipts: list[Receipt]
    returning: list[str]
    backups: list[str]
    backups_deleted: int


class PurgePreview(Contract):
    """`corpus purge --dry-run`: what would be erased. Without names only ``backups`` is there.

    Attributes:
        backups: backup files that may contain the documents.
        documents: number of documents; ``chunks`` and ``vectors`` likewise.
        decision_ids: ids of the decisions.
        facts: the ids of remembered facts among them that are erased because they cite another one.
        returning: files on disk that the next ingest would add again.
        publications: those that ever held something of it.
    """

    backups: list[str]
    documents: int | None = None
    chunks: int | None = None
    vectors: int | None = None
    document_ids: list[str] | None = None
    decision_ids: list[str] | None = None
    facts: list[str] | None = None
    returning: list[str] | None = None
    publications: list[PublishedCopy] | None = None
