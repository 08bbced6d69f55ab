"""The answers of `embed`."""

from rolebundle.contracts.base import Contract, list_of
from rolebundle.contracts.status import IndexStatus


class EmbedResult(Contract):
    """`corpus embed`.

    Attributes:
        embedded: number of chunks that were embedded in this run.
        waiting: number of chunks without a vector.
        recall: recall of the approximate index on a sample, in [0, 1]; null if none was built.
        fast: whether the approximate index is used; null if none was built.
    """

    embedded: int
    waiting: int
    recall: float | None = None
    fast: bool | None = None


class EmbedPlan(Contract):
    """`embed --dry-run`: an estimate of a run.

    Attributes:
        chunks: number of chunks in the corpus.
        waiting: number of chunks to embed.
        seconds: duration.
        bytes: growth of the corpus file.
    """

    chunks: int
    waiting: int
    seconds: float
    bytes: int


EmbeddingIndexes = list_of(
    IndexStatus,
    "indexes",
    "EmbeddingIndexes",
    "`corpus embed list`: the embedding indexes of the corpus.",
)
