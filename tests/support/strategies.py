"""Hypothesis strategies: corpora, overlays and requests that meet each other often enough."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.corpus.store import StoredDocument
from support.corpora import chunk, overlay
from support.corpora import document as plain_document

# Few words, so that tasks, vocabularies and texts meet; some of them are syntax elsewhere.
WORDS = (
    "token", "rotation", "audit", "release", "kernel", "threat", "model", "the",
    "NEAR", "OR", "naïve", "Straße", "ключ", "数据", "🚀", "user_id", "v2.1", "שלום",
)  # fmt: skip
SOURCES = ("wiki", "vendor-blog", "policy", "tickets")
TYPES = ("runbook", "policy", "note")
DOMAINS = ("security", "platform")
TIERS = ("authoritative", "preferred", "general", "untrusted")
ROLES = ("reviewer", "writer")
DATES = (None, "2019-01-01T00:00:00Z", "2026-05-01T00:00:00Z", "2026-10-30T00:00:00Z")
NAMES = tuple(f"d{number}" for number in range(8))

# What a file can hold: no half surrogates, those do not survive the readers.
any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
word_text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=10).map(" ".join)

_LONG = " ".join(f"sentence {n} of one long passage" for n in range(12))
near_duplicate = st.sampled_from([f"{_LONG} {ending}" for ending in WORDS[:4]])
passage_text = st.one_of(word_text, word_text, near_duplicate, any_text)


@st.composite
def documents(draw: st.DrawFn, name: str) -> StoredDocument:
    texts = draw(st.lists(passage_text, min_size=1, max_size=3))
    made = plain_document(
        name,
        texts,
        title=draw(word_text),
        source_id=draw(st.sampled_from(SOURCES)),
        document_type=draw(st.sampled_from(TYPES)),
        domain=draw(st.sampled_from(DOMAINS)),
        trust_tier=draw(st.sampled_from(TIERS)),
        updated_at=draw(st.sampled_from(DATES)),
        tags=tuple(draw(st.lists(st.sampled_from(WORDS), max_size=2, unique=True))),
        applicable_roles=tuple(draw(st.lists(st.sampled_from(ROLES), max_size=2, unique=True))),
        excluded_roles=tuple(draw(st.sampled_from([(), (), (), ("writer",), ("reviewer",)]))),
        retrieval_hints=tuple(draw(st.lists(word_text, max_size=1))),
        supersedes=tuple(draw(st.sampled_from([(), (), (), ("d0",), ("d1.md",), ("d2", "d3.md")]))),
    )
    if draw(st.integers(0, 5)) == 0:
        # One chunk with a rule of its own.
        first = made.chunks[0]
        own = chunk(first.chunk_id, first.content, excluded_roles=("reviewer",))
        made = StoredDocument(made.metadata, (own, *made.chunks[1:]))
    return made


@st.composite
def corpora(draw: st.DrawFn, least: int = 0, most: int = 8) -> list[StoredDocument]:
    number = draw(st.integers(least, most))
    return [draw(documents(name)) for name in NAMES[:number]]


_boost = st.sampled_from([0.01, 0.3, 1.0, 1.5, 2.0, 100.0])
_pattern = st.sampled_from(["wiki", "BLOG", "policy", "tick", "runbook", "security", "nowhere"])


def _rules(boosted: bool = False) -> st.SearchStrategy[list[dict[str, Any]]]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "pattern": _pattern,
        "reason": st.sampled_from(["", "because"]),
    }
    if boosted:
        fields["boost"] = st.none() | _boost
    return st.lists(st.fixed_dictionaries(fields), max_size=2)


_phrases = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=4
)
_weights = st.sampled_from(
    [(0.3, 0.3, 0.2, 0.2), (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.5, 0.5)]
)


@st.composite
def overlays(draw: st.DrawFn, **policy: Any) -> Overlay:
    """Any overlay; ``policy`` fixes fields of the retrieval policy."""
    lexical, semantic, metadata, rerank = draw(_weights)
    drawn = {
        "lexical_weight": lexical,
        "semantic_weight": semantic,
        "metadata_weight": metadata,
        "rerank_weight": rerank,
        "max_selected_chunks": draw(st.integers(1, 12)),
        "require_source_diversity": draw(st.booleans()),
        "max_chunks_per_source": draw(st.integers(1, 3)),
        "freshness_max_age_days": draw(st.sampled_from([None, 30.0, 365.0])),
        "stale_penalty": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "role_mismatch_penalty": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "min_score": draw(st.sampled_from([0.0, 0.1, 0.3, 2.0])),
        "fusion": draw(st.sampled_from(["weighted", "rrf"])),
        "expansion_weight": draw(st.sampled_from([0.0, 0.2, 1.0])),
    }
    return overlay(
        mission=draw(st.sampled_from(["", "Audit token rotation.", "数据 ключ"])),
        vocabulary={
            "preferred_terms": draw(_phrases),
            "synonyms": draw(
                st.sampled_from([{}, {"token": ["ключ", "secret key", "credential"]}])
            ),
            "boost_phrases": draw(_phrases),
            "suppress_phrases": draw(_phrases),
        },
        source_policy={
            "forbidden_sources": draw(_rules()),
            "allowed_sources": draw(st.one_of(st.just([]), _rules())),
            "preferred_sources": draw(_rules(boosted=True)),
            "trust_tier_boosts": draw(st.dictionaries(st.sampled_from(TIERS), _boost, max_size=2)),
            "document_type_boosts": draw(
                st.dictionaries(st.sampled_from(TYPES), _boost, max_size=1)
            ),
            "domain_boosts": draw(st.dictionaries(st.sampled_from(DOMAINS), _boost, max_size=1)),
        },
        retrieval_policy=drawn | policy,
    )


task_text = st.one_of(word_text, word_text, any_text.filter(lambda text: bool(text.strip())))


@st.composite
def requests(draw: st.DrawFn, **fields: Any) -> dict[str, Any]:
    """Fields of a request; fields given here are not drawn, and ``None`` leaves one out."""
    drawn: dict[str, Any] = {
        "task": draw(task_text),
        "limit": draw(st.none() | st.integers(1, 12)),
        "token_budget": draw(st.none() | st.integers(1, 200)),
        "fusion": draw(st.sampled_from([None, "weighted", "rrf"])),
        "lexical_only": draw(st.booleans()),
    }
    return {name: value for name, value in (drawn | fields).items() if value is not None}
