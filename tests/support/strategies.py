"""Hypothesis strategies for corpora, overlays and requests that often match each other.

Drawing each field by itself would take most of an example's time. So fields with few possible values
are drawn together, as one number (see ``choices``).
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.storage.documents import StoredDocument
from support.corpora import FLAGGED, chunk, overlay
from support.corpora import document as plain_document
from support.databases import IS_STORE
from support.values import WORDS

# Few words, so that tasks, vocabularies and texts match. Some are syntax in FTS5.
SOURCES = ("wiki", "vendor-blog", "policy", "tickets")
TYPES = ("runbook", "policy", "note")
DOMAINS = ("security", "platform")
TIERS = ("authoritative", "preferred", "general", "untrusted")
ROLE_LISTS = ((), ("reviewer",), ("writer",), ("reviewer", "writer"))
DATES: tuple[tuple[str | None, str | None, str | None], ...] = (
    (None, None, None),
    ("2019-01-01T00:00:00Z", None, None),
    ("2026-05-01T00:00:00Z", None, None),
    ("2026-10-30T00:00:00Z", None, None),
    (None, "2026-06-01T00:00:00Z", None),
    ("2026-05-01T00:00:00Z", None, "2026-06-30T23:59:59Z"),
    (None, "2026-11-02T00:00:00Z", "2026-12-31T23:59:59Z"),
)
"""``updated_at``, ``valid_from`` and ``valid_until``."""
LABELS = (("internal", None), ("internal", None), ("confidential", None), ("internal", FLAGGED))
ORIGINS = ("internal", "internal", "external", "untrusted")
NAMES = tuple(f"d{number}" for number in range(8))


def choices(*options: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """Draw one value of each option as a single number. The first values are the simplest."""
    combinations = prod(len(values) for values in options)
    # Over 24 bits hypothesis prefers small numbers, and the last options would rarely change.
    assert combinations < 2**24

    def chosen(number: int) -> list[Any]:
        picked = []
        for values in options:
            number, place = divmod(number, len(values))
            picked.append(values[place])
        return picked

    return st.integers(0, combinations - 1).map(chosen)


def named_choices(**options: Sequence[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The same, as name → value."""
    return choices(*options.values()).map(lambda values: dict(zip(options, values, strict=True)))


# Text that a file can have: no unpaired surrogates.
# The readers let no NUL through, which PostgreSQL does not store.
_characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0" if IS_STORE else "")
any_text = st.text(_characters, min_size=1, max_size=30)
few_words = choices(*[(*WORDS, "")] * 5).map(
    lambda words: " ".join(word for word in words if word) or WORDS[0]
)
more_words = st.tuples(few_words, few_words).map(" ".join)
word_text = st.one_of(few_words, more_words)

LONG = " ".join(f"passage{n}" for n in range(80))
# One word changed: such texts are no copies of each other.
alike = st.sampled_from([f"{LONG} {WORDS[0]} {ending}" for ending in ("still", "again", "anew")])
passage_text = st.one_of(few_words, more_words, alike, any_text)
phrases = choices(*[("", *WORDS)] * 5).map(
    lambda words: [
        phrase for phrase in (" ".join(filter(None, words[:2])), " ".join(words[2:4]).strip(),
                              words[4]) if phrase
    ]
)  # fmt: skip

_metadata = named_choices(
    source_id=SOURCES,
    document_type=TYPES,
    domain=DOMAINS,
    trust_tier=TIERS,
    dates=DATES,
    applicable_roles=ROLE_LISTS,
    excluded_roles=((), (), (), ("writer",), ("reviewer",)),
    supersedes=((), (), (), ("d0",), ("d1.md",), ("d2", "d3.md")),
    own_rule=({}, {}, {}, {"excluded_roles": ("reviewer",)}, {"applicable_roles": ("reviewer",)}),
    origin=ORIGINS,
    label=LABELS,
)
_extras = choices(
    (None, None, "2020-01-01T00:00:00Z", "2026-10-30T00:00:00Z", "2030-01-01T00:00:00Z"),
    ((), (), (("layout", ("post", WORDS[0])),), (("layout", ("page",)), ("x.y", (WORDS[1],)))),
)


@st.composite
def documents(draw: st.DrawFn, name: str) -> StoredDocument:
    """A document of one to three passages."""
    texts = draw(st.lists(passage_text, min_size=1, max_size=3))
    fields = draw(_metadata)
    inferred, attributes = draw(_extras)
    tags, hints, title = draw(st.tuples(phrases, phrases, few_words))
    own_rule, (sensitivity, scanned) = fields.pop("own_rule"), fields.pop("label")
    date, valid_from, valid_until = fields.pop("dates")
    stored = plain_document(
        name,
        texts,
        title=title,
        updated_at=date,
        inferred_at=None if date else inferred,
        valid_from=valid_from,
        valid_until=valid_until,
        tags=tuple(tags),
        retrieval_hints=tuple(hints),
        sensitivity=sensitivity,
        attributes=attributes,
        **fields,
    )
    chunks = stored.chunks
    if own_rule:
        # One chunk has roles of its own.
        chunks = (chunk(chunks[0].chunk_id, chunks[0].content, **own_rule), *chunks[1:])
    return StoredDocument(stored.metadata, chunks, scanned)


@st.composite
def corpora(draw: st.DrawFn, least: int = 0, most: int = 8) -> list[StoredDocument]:
    """Draw documents that may supersede or duplicate each other, and exclude roles."""
    number = draw(st.integers(least, most))
    return [draw(documents(name)) for name in NAMES[:number]]


_BOOSTS = (1.0, 0.01, 0.3, 1.5, 2.0, 100.0)
_RULES: tuple[dict[str, Any], ...] = (
    *(
        {"pattern": pattern, "reason": reason}
        for pattern, reason in (
            ("nowhere", ""), ("wiki", "because"), ("BLOG", ""), ("policy", "x"), ("tick", ""),
            ("runbook", ""), ("security", "y"),
        )
    ),
    {"path": "d1.md"}, {"path": "d?.md", "reason": "z"}, {"path": "**"}, {"path": "*1*"},
)  # fmt: skip
_WEIGHTS = ("lexical_weight", "semantic_weight", "metadata_weight", "rerank_weight")
_policy = named_choices(
    weights=(
        (0.3, 0.3, 0.2, 0.2),
        (1.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 0.0, 0.0),
        (0.0, 0.0, 0.5, 0.5),
    ),
    max_selected_chunks=(10, 1, 2, 3, 5, 12),
    require_source_diversity=(False, True),
    max_chunks_per_source=(3, 1, 2),
    diversity=("soft", "hard"),
    freshness_max_age_days=(None, 30.0, 365.0),
    stale_penalty=(0.5, 0.0, 1.0),
    role_mismatch_penalty=(0.5, 0.0, 1.0),
    min_score=(0.0, 0.1, 0.3, 2.0),
    fusion=("weighted", "rrf"),
    expansion_weight=(0.2, 0.0, 1.0),
    mission=("", "Audit token rotation.", "数据 ключ"),
)
_sources = choices(
    (None, None, *_RULES),
    (None, None, *_RULES),
    (None,) * 5 + _RULES,
    (None, *_RULES),
    (None, *_BOOSTS),
)
_boosts = choices(
    (None, *TIERS), _BOOSTS, (None, *TYPES), _BOOSTS, (None, *DOMAINS), _BOOSTS,
    ({}, {"token": ["ключ", "secret key", "credential"]}),
)  # fmt: skip


@st.composite
def overlays(draw: st.DrawFn, **policy: Any) -> Overlay:
    """Draw an overlay; ``policy`` fixes fields of the retrieval policy."""
    drawn = draw(_policy)
    mission = drawn.pop("mission")
    drawn |= zip(_WEIGHTS, drawn.pop("weights"), strict=True)
    forbidden, also, allowed, preferred, boost = draw(_sources)
    tier, tier_boost, kind, kind_boost, domain, domain_boost, synonyms = draw(_boosts)
    terms, boosted, suppressed = draw(st.tuples(phrases, phrases, phrases))
    return overlay(
        mission=mission,
        bridge_roles=["writer"] if mission else [],
        synthesis_policy={"required_evidence_kinds": ["runbook", WORDS[0]] if mission else []},
        vocabulary={
            "preferred_terms": terms,
            "synonyms": synonyms,
            "boost_phrases": boosted,
            "suppress_phrases": suppressed,
        },
        source_policy={
            "forbidden_sources": [rule for rule in (forbidden, also) if rule],
            "allowed_sources": [allowed] if allowed else [],
            "preferred_sources": [preferred | {"boost": boost}] if preferred else [],
            "trust_tier_boosts": {tier: tier_boost} if tier else {},
            "document_type_boosts": {kind: kind_boost} if kind else {},
            "domain_boosts": {domain: domain_boost} if domain else {},
        },
        retrieval_policy=drawn | policy,
    )


EXACT_WORDS = ("", '"token rotation"', "user_id", "v2.1", "E4711", "tokne", "reelase")
"""What of a task is meant exactly, and words that are misspelled."""
plain_task = st.one_of(few_words, more_words, any_text.filter(lambda text: bool(text.strip())))
task_text = st.one_of(plain_task, st.tuples(few_words, st.sampled_from(EXACT_WORDS)).map(" ".join))
also = st.none() | st.lists(task_text, max_size=2)
WHERES: tuple[dict[str, Any] | None, ...] = (
    None, None, None, None,
    {"source": "WIKI"},
    {"source": ["wiki", "policy"], "document_type": "runbook"},
    {"domain": ["security", "nowhere"]},
    {"tags": ["token", "audit", "the"]},
    {"path": "d?.m?"},
    {"path": ["nothing/**", "file:d*"], "updated_after": "2026-05-01"},
    {"updated_before": "2026-10-30T00:00:00Z"},
    {"source": "nowhere"},
    {"attributes": {"Layout": ["POST", "none"]}},
    {"attributes": {"layout": "page", "x.y": WORDS[1]}, "source": ["wiki", "policy"]},
)  # fmt: skip
AS_OF = (None, None, None, "2026-05-01", "2026-07-01T12:00:00+02:00", "2026-12-01")
SEENS = (None, None, [], ["d0#0"], ["d1#0", "d1#1", "d2#0", "crowd#3"], ["nothing"])
_limits = named_choices(
    limit=(None, 1, 2, 3, 5, 8, 12),
    token_budget=(None, 1, 5, 20, 50, 200),
    fusion=(None, "weighted", "rrf"),
    lexical_only=(False, True),
    action=(None, None, "suggest", "execute", "external_send"),
    approval=(None, "Ana"),
    where=WHERES,
    seen=SEENS,
    evidence=(None, None, "required", "optional"),
    as_of=AS_OF,
)


@st.composite
def requests(draw: st.DrawFn, **fields: Any) -> dict[str, Any]:
    """Draw fields of a request. Fields in ``fields`` are not drawn; ``None`` leaves a field out."""
    drawn = {**draw(_limits), "task": draw(task_text), "also": draw(also)}
    return {name: value for name, value in (drawn | fields).items() if value is not None}
