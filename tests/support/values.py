"""Values that pass between the steps of the pipeline, with defaults for most fields."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rolebundle.contracts.bundle import CorpusState
from rolebundle.contracts.documents import DocumentMetadata, Noise, Passage
from rolebundle.contracts.overlay import Overlay, RetrievalPolicy
from rolebundle.contracts.terms import Fusion, RejectionCode
from rolebundle.retrieval.evidence import Evidence
from rolebundle.retrieval.query import build_query
from rolebundle.retrieval.request import ResolvedRequest
from rolebundle.retrieval.scoring import SATURATED_METADATA
from rolebundle.retrieval.values import Candidate, Pool, Retrieval, Weights
from rolebundle.storage.digests import content_hash

WORDS = (
    "token", "rotation", "audit", "release", "kernel", "threat", "model", "the",
    "NEAR", "OR", "naïve", "Straße", "ключ", "数据", "🚀", "user_id", "v2.1", "שלום",
)  # fmt: skip
"""Words of generated texts and tasks, in several scripts, and with operators of FTS5."""

_DOCUMENT_FIELDS = frozenset(DocumentMetadata._fields)


def passage(chunk_id: str = "c1", content: str = "", **fields: Any) -> Passage:
    """Make a passage; ``fields`` are its own or its document's (``source_id=…``).

    As in the corpus, the passage has its document's roles unless it has its own. Every passage
    has a text of its own unless one is given.
    """
    of_document = {name: fields.pop(name) for name in [*fields] if name in _DOCUMENT_FIELDS}
    document = DocumentMetadata(
        **{"document_id": f"doc-{chunk_id}", "source_id": "wiki", "title": "T", "uri": "u"}
        | of_document
    )
    text = content or f"text of {chunk_id}"
    settings: dict[str, Any] = {
        "rowid": abs(hash(chunk_id)) % 10_000,
        "path": "a.md",
        "headings": (),
        "content_type": "paragraph",
        "content_hash": content_hash(text),
        "start_line": 1,
        "end_line": 2,
        "page": 0,
        "tags": document.tags,
        "applicable_roles": document.applicable_roles,
        "excluded_roles": document.excluded_roles,
    }
    return Passage(chunk_id=chunk_id, content=text, document=document, **(settings | fields))


def weights(
    role: Overlay | None = None, fusion: Fusion = "weighted", role_share: float = 0.4
) -> Weights:
    """The weights with both lanes."""
    policy = role.retrieval_policy if role else RetrievalPolicy()
    share = role_share if role else 0.0
    return Weights.of(policy, fusion, has_semantic=True, role_share=share)


def candidate(
    of: Passage | None = None,
    lexical: float = 0.5,
    semantic: float = 0.0,
    of_weights: Weights | None = None,
    **fields: Any,
) -> Candidate:
    """A candidate as ``score_hits`` returns it."""
    settings: dict[str, Any] = {"lanes": ("lexical",), "bm25": 1.0, "bm25_expansion": 0.0}
    row = Candidate(of or passage(), lexical=lexical, semantic=semantic, **(settings | fields))
    row.weigh(of_weights or weights())
    return row


def ranked(of: Passage | None = None, final: float = 0.5, **fields: Any) -> Candidate:
    """A candidate as ``rank`` returns it, with this final score."""
    row = candidate(of, **fields)
    row.metadata, row.final = min(1.0, row.metadata_score / SATURATED_METADATA), final
    return row


NOISE = Noise(floor=0.2, related=0.6)


def evidence(
    matches: Mapping[int, Collection[int]] = MappingProxyType({}),
    frequencies: Sequence[int] = (1, 1),
    cosines: Mapping[int, float] | None = None,
    chunks: int = 9,
    positions_by_wording: Sequence[frozenset[int]] = (),
) -> Evidence:
    """The evidence for a task, if these are the first passages and all that has a word of it.

    Args:
        matches: rowid → the positions of the words that the passage has.
        frequencies: of the task's words.
        cosines: rowid → cosine; ``None`` if meanings were not searched.
        chunks: how many are visible.
        positions_by_wording: the positions of the words of each wording; the task's own come first.
    """
    having = {rowid: frozenset(positions) for rowid, positions in matches.items()}
    own = frozenset(range(len(frequencies)))
    rarities = [1.0] * len(frequencies)
    words = Evidence(frequencies, chunks, having, positions_by_wording or (own,), rarities)
    bm25 = {rowid: words.nats_of(positions) for rowid, positions in having.items() if positions}
    noise = None if cosines is None else NOISE
    return words.with_scores(bm25, cosines or {}, noise).with_support([*having])


def rejected(
    code: RejectionCode, of: Passage | None = None, note: str = "so", **fields: Any
) -> Candidate:
    return candidate(of or passage("rejected"), code=code, note=note, **fields)


CORPUS = CorpusState(
    file="corpus.db", corpus_id="id", schema_version=1, generation=3, documents=2, chunks=5
)
SUPPORTED = evidence({1: {0, 1}})


def retrieval(
    request: ResolvedRequest,
    ranked: Sequence[Candidate] = (),
    filtered: Sequence[Candidate] = (),
    **fields: Any,
) -> Retrieval:
    """What the steps return for a request; ``filtered`` are the candidates that filter rejected."""
    settings: dict[str, Any] = {
        "request": request,
        "query": build_query(request.task, request.overlay),
        "evidence": SUPPORTED,
        "weights": weights(request.overlay, request.fusion),
        "corpus_state": CORPUS,
        "pool": Pool(),
        "candidates": [*ranked, *filtered],
        "ranked": ranked,
    }
    return Retrieval(**(settings | fields))
