"""Evidence, conflicts, dates, and the bundle that says so."""

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.documents import Passage
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import TRUST_TIERS
from rolebundle.retrieval.bundle import bundle_of
from rolebundle.retrieval.evidence import ENOUGH_CLOSENESS, ENOUGH_COVERAGE, Evidence, Support
from rolebundle.retrieval.select import ALWAYS_COMPARED, conflicts, select
from rolebundle.retrieval.values import Candidate
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.bundles import messages, rejection_codes
from support.corpora import answered, document, overlay, resolved
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests
from support.values import NOISE, evidence, passage, ranked, retrieval

# -- How much of the task the visible corpus has, on an absolute scale -----------------------------


@pytest.mark.parametrize(
    ("position", "weight"),
    [
        (0, 4.61512),  # ln(1 + 100 / 1)
        (1, 2.39790),  # ln(1 + 100 / 10)
        (2, 0.69315),  # ln(1 + 100 / 100): a word that every chunk has
        (3, 2.30756),  # Half as rare; a word that no chunk has counts as a word of one chunk.
    ],
)
def test_a_word_weighs_its_rarity_times_ln_of_1_plus_chunks_by_frequency(
    position: int, weight: float
) -> None:
    words = Evidence(frequencies=(1, 10, 100, 0), chunks=100, rarities=(1.0, 1.0, 1.0, 0.5))
    assert words.nats_of([position]) == pytest.approx(weight, abs=1e-5)


def test_coverage_is_the_share_of_the_words_by_weight() -> None:
    found = evidence({1: {0}, 2: {1}, 3: set()}, frequencies=(1, 10), chunks=100)
    # 4.61512 / (4.61512 + 2.39790)
    share = pytest.approx(0.65808, abs=1e-5)
    assert found.support(1) == Support(1, 2, share, None, share)
    assert found.support(2).coverage == pytest.approx(0.34192, abs=1e-5)
    assert found.support(3) == Support(0, 2, 0.0, None)


def test_with_other_wordings_it_is_the_mean_of_those_that_have_words() -> None:
    own, also = frozenset({0, 1}), frozenset({2, 3})
    matches = {1: {2, 3}, 2: {0, 1, 2}}
    found = evidence(matches, (1,) * 4, positions_by_wording=(own, also, frozenset()))
    assert found.support(1).coverage == pytest.approx(0.5)
    assert found.support(2).coverage == pytest.approx(0.75)
    assert (found.support(1).matched_words, found.support(1).total_words) == (0, 2)


def test_another_wording_takes_no_passage_from_the_task() -> None:
    own, also = frozenset(range(4)), frozenset({4})
    found = evidence({1: {0}}, (1,) * 5, positions_by_wording=(own, also))
    assert found.support(1).coverage == pytest.approx(0.125)
    assert found.support(1).is_for_task


@pytest.mark.parametrize(
    ("coverage", "closeness", "is_for_task"),
    [
        (ENOUGH_COVERAGE, 0.0, True),
        (ENOUGH_COVERAGE, None, True),
        (0.0, ENOUGH_CLOSENESS, True),
        (ENOUGH_COVERAGE - 0.01, ENOUGH_CLOSENESS - 0.01, False),
        (ENOUGH_COVERAGE - 0.01, None, False),
    ],
)
def test_words_or_meaning_make_a_passage_evidence(
    coverage: float, closeness: float | None, is_for_task: bool
) -> None:
    support = Support(1, 4, 0.0, closeness, best_coverage=coverage)
    assert support.is_for_task == is_for_task


@pytest.mark.parametrize(
    ("matches", "specificity"),
    [([{0, 1}], 2 * 11 / 12), ([{0, 1}, {0}], 2 - 3 / 12), ([{0, 1}] * 12, 0.4 * 2)],
)
def test_specificity_is_what_the_best_has_more_than_the_twelve_best_on_average_or_a_part_of_that(
    matches: list[set[int]], specificity: float
) -> None:
    # It is the same in a corpus of any size.
    for chunks in (9, 1_000, 20_000):
        found = evidence(dict(enumerate(matches)), frequencies=(1, 1), chunks=chunks)
        assert found.specificity == pytest.approx(specificity)


NONE = (0,) * 4
ONE_OF_FOUR: dict[str, Any] = {"matches": {1: {0}}, "frequencies": (1,) * 4}


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        # With few of its words the evidence is weak, the less so the closer a passage is.
        (ONE_OF_FOUR, "weak"),
        (ONE_OF_FOUR | {"cosines": {1: 0.29}}, "weak"),
        (ONE_OF_FOUR | {"cosines": {1: 0.30}}, "supported"),
        # In a large corpus more of them are needed.
        (ONE_OF_FOUR | {"chunks": 9}, "supported"),
        (ONE_OF_FOUR | {"chunks": 10**6}, "weak"),
        # It is off topic if no word occurs and nothing is close.
        ({"frequencies": NONE}, "off_topic"),
        ({"frequencies": NONE, "cosines": {1: 0.1}}, "off_topic"),
        ({"frequencies": NONE, "cosines": {1: 0.6}}, "weak"),
        # Elsewhere one of them occurs.
        ({"frequencies": (0, 0, 0, 1)}, "weak"),
    ],
)
def test_how_much_of_the_task_there_is(fields: dict[str, Any], verdict: str) -> None:
    assert evidence(**{"chunks": 1000} | fields).task_support == verdict


# -- for every corpus ----------------------------------------------------------------------------

ROWS = 20


@st.composite
def found(draw: st.DrawFn) -> Evidence:
    """Evidence of up to 20 passages for a task of up to 6 words, perhaps with other wordings."""
    chunks = draw(st.integers(0, 10_000))
    frequencies = draw(st.lists(st.integers(0, chunks), max_size=6))
    positions = st.frozensets(st.sampled_from([*range(len(frequencies))]), max_size=6)
    some = positions if frequencies else st.just(frozenset[int]())
    rows = st.integers(0, ROWS)
    matches = draw(st.dictionaries(rows, some))
    bm25 = {row: 1.0 + len(matched) for row, matched in matches.items() if matched}
    cosines = draw(st.none() | st.dictionaries(rows, st.floats(-1, 1)))
    size = len(frequencies)
    rarities = draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    wordings = draw(st.lists(some, min_size=1, max_size=3))
    words = Evidence(frequencies, chunks, matches, wordings, rarities)
    noise = None if cosines is None else NOISE
    return words.with_scores(bm25, cosines or {}, noise).with_support([*matches])


@given(found())
def test_coverage_and_closeness_are_between_0_and_1(of: Evidence) -> None:
    for support in (of.best_support, *map(of.support, of.matches)):
        assert 0 <= support.coverage <= 1
        assert support.closeness is None or 0 <= support.closeness <= 1
        assert 0 <= support.matched_words <= support.total_words
    assert 0 <= of.specificity < math.inf


@given(found(), st.data())
def test_a_further_word_never_lowers_the_evidence(of: Evidence, data: st.DataObject) -> None:
    if not of.matches or not of.frequencies:
        return
    row = data.draw(st.sampled_from([*of.matches]))
    word = data.draw(st.integers(0, len(of.frequencies) - 1))
    matches = {**of.matches, row: of.matches[row] | {word}}
    after = of._replace(matches=matches).with_support([*matches])
    assert after.support(row).coverage >= of.support(row).coverage
    states = ["off_topic", "weak", "supported"]
    assert states.index(after.task_support) >= states.index(of.task_support)


# -- the bundle, which contains every candidate --------------------------------------------

ROLE = overlay(vocabulary={"preferred_terms": ["rotation"]})


ROW = {name: row for row, name in enumerate("abc", start=1)}


def answer_of(role: Overlay | None, of_evidence: Evidence, *tiers: str) -> RetrievalBundle:
    """An answer with passages ``a``, ``b`` and ``c`` of these trust tiers."""
    selection = [
        ranked(passage(name, rowid=row, trust_tier=tier))
        for (name, row), tier in zip(ROW.items(), tiers, strict=True)
    ]
    request = resolved(role, task="token token rotation")
    return bundle_of(retrieval(request, selection, evidence=of_evidence))


@pytest.mark.parametrize(("role", "expected"), [(ROLE, "role"), (None, "task")])
def test_a_passage_is_there_for_the_task_or_for_the_role(
    role: Overlay | None, expected: str
) -> None:
    # a has a word, b is close in meaning, c has neither.
    of_evidence = evidence({ROW["a"]: {0}}, cosines={ROW["b"]: 0.5, ROW["c"]: 0.3})
    bundle = answer_of(role, of_evidence, "general", "general", "general")
    assert [chunk.evidence for chunk in bundle.selected] == ["task", "task", expected]
    raw = [chunk.raw for chunk in bundle.selected if chunk.raw]
    assert [(score.matched_words, score.coverage, score.closeness) for score in raw] == [
        (1, 0.5, None), (0, 0.0, 0.75), (0, 0.0, 0.25),
    ]  # fmt: skip


@pytest.mark.parametrize("role", [ROLE, None])
@pytest.mark.parametrize(
    ("matches", "posture"),
    [
        ({"a": {0}}, "strong"),
        ({"b": {0}, "c": {0}}, "mixed"),
        ({"c": {0, 1}}, "weak"),
        ({}, "weak"),
    ],
)
def test_the_trust_posture_is_of_the_passages_that_are_evidence_for_the_task(
    matches: dict[str, set[int]], posture: str, role: Overlay | None
) -> None:
    of_evidence = evidence({ROW[name]: words for name, words in matches.items()})
    bundle = answer_of(role, of_evidence, "authoritative", "preferred", "general")
    assert bundle.provenance.trust_posture == posture


# -- Which passages conflict: those whose documents declare it -------------------------------------


def chosen_conflicts(*passages: Passage, limit: int = 9) -> list[Candidate]:
    ordered = [ranked(chosen_passage, 0.9 - n / 100) for n, chosen_passage in enumerate(passages)]
    select(ordered, resolved(limit=limit))
    return ordered


def found_conflicts(*passages: Passage, limit: int = 9) -> list[tuple[str, str]]:
    pairs = conflicts(chosen_conflicts(*passages, limit=limit), limit)
    return [(first.chunk_id, second.chunk_id) for first, second in pairs]


def test_a_declared_contradiction_is_a_conflict_of_any_texts() -> None:
    claim = passage("b", "other", contradicts=("doc-a",))
    assert found_conflicts(passage("a"), claim) == [("a", "b")]
    assert found_conflicts(claim, passage("a")) == [("b", "a")]
    by_path = passage("c", contradicts=("notes/old.md",), path="c.md")
    assert found_conflicts(passage("a", path="notes/old.md"), by_path) == [("a", "c")]


def test_texts_are_not_compared() -> None:
    first, second = (passage(name, f"Tapes are kept for {name} days.") for name in ("30", "90"))
    assert found_conflicts(first, second) == []


@pytest.mark.parametrize("limit", [1, 3])
def test_a_small_limit_hides_no_disagreement(limit: int) -> None:
    first, second = passage("a"), passage("b", contradicts=("doc-a",))
    others = [passage(f"other{n}", f"Text {n} of the page.") for n in range(ALWAYS_COMPARED)]
    for between in (limit - 1, ALWAYS_COMPARED - 2):
        passages = (first, *others[:between], second)
        assert chosen_conflicts(*passages, limit=limit)[-1].code == "budget_cut"
        assert found_conflicts(*passages, limit=limit) == [("a", "b")]
    assert found_conflicts(first, *others[: ALWAYS_COMPARED - 1], second, limit=limit) == []


drawn_passages = st.lists(
    st.tuples(st.sampled_from(TRUST_TIERS), st.sampled_from("def"), st.sampled_from(" def")),
    max_size=6,
).map(
    lambda drawn: [
        passage(f"{n}", trust_tier=tier, document_id=document, contradicts=(claim,))
        for n, (tier, document, claim) in enumerate(drawn)
    ]
)


@given(drawn_passages)
def test_every_declared_pair_of_equal_trust_is_found(drawn: list[Passage]) -> None:
    expected = {
        frozenset((first.chunk_id, second.chunk_id))
        for first in drawn
        for second in drawn
        if first.document.trust_tier == second.document.trust_tier
        and first.document.document_id != second.document.document_id
        and second.document.document_id in first.document.contradicts
    }
    pairs = [frozenset(pair) for pair in found_conflicts(*drawn)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected


def test_what_a_further_search_finds_is_evidence_by_its_meaning() -> None:
    """A role forbids all that the first search finds; a paraphrase is found by the second one."""
    taken = [
        document(f"t{n:03}", ["isolation of patients"], source_id="closed") for n in range(120)
    ]
    model = HashingProvider()
    near = document("near", ["isolation of patients in rooms of their own"], source_id="open")
    role = overlay(
        source_policy={"forbidden_sources": [{"pattern": "closed"}]},
        retrieval_policy={"evidence": "required"},
    )
    bundle = answered([*taken, near], role, model, task="isolation patients")
    [shown] = bundle.selected
    assert shown.document_id == "near"
    assert shown.raw.closeness is not None


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("What were the sales of Quarrel in FY2022?", ""),
        ("What does sales.total do for Quarrel?", ""),
        ("How did sales of Quarrel change in FY2031?", "FY2031"),
        ("Did Quarrel buy the company Fenwick in 2022?", "Fenwick"),
        ("What total does Quarrel state with its ROI for 2022?", ""),
        ("What does sales.refund do for Quarrel?", "sales.refund"),
    ],
)
def test_nothing_is_missing_whose_parts_are_there(task: str, missing: str) -> None:
    report = document("report", ["Sales of Quarrel in 2022: the total was 4 million. Do change."])
    bundle = answered([report], None, None, task=task)
    messages = [warning.message for warning in bundle.warnings if warning.code == "WORDS_MISSING"]
    assert messages == ([f"no passage mentions: {missing}"] if missing else [])


# -- Inferred dates count for freshness only: a fresh copy of an old text is not newer -------------

OLD, RECENT, FUTURE = "2020-01-01T00:00:00Z", "2026-10-30T00:00:00Z", "2030-01-01T00:00:00Z"
"""The time of a request that names none is the first of November 2026."""
DATES = (None, OLD, RECENT, FUTURE)
ROLE_DATES = overlay(retrieval_policy={"min_score": 0.0})

_documents = st.lists(
    st.tuples(
        st.sampled_from((30, 60, 90)),
        st.sampled_from((None, None, OLD, RECENT)),
        st.sampled_from(DATES),
        st.sampled_from(((), ("d0",), ("d1",))),
        st.sampled_from(((), (), ("d0",))),
    ),
    min_size=2,
    max_size=5,
)


def stored(number: int, drawn: Any, *, inferred: bool) -> StoredDocument:
    days, date, file_date, supersedes, contradicts = drawn
    return document(
        f"d{number}",
        [f"The gateway keeps a token log for {days} days."],
        updated_at=date,
        inferred_at=file_date if inferred and date is None else None,
        supersedes=supersedes,
        contradicts=contradicts,
    )


def outcome(bundle: RetrievalBundle) -> Any:
    """All of the answer that is no freshness."""
    return (
        [chunk.chunk_id for chunk in bundle.selected],
        [chunk.scores for chunk in bundle.selected],
        [(rejection.chunk_id, rejection.reason, rejection.notes) for rejection in bundle.rejected],
        [
            (warning.code, warning.message)
            for warning in bundle.warnings
            if warning.code != "STALE_DOMINANT"
        ],
    )


@few_examples
@given(_documents, st.sampled_from((None, "2019-01-01", "2026-10-01", "2031-01-01")))
def test_inferred_dates_change_no_conflict_no_order_and_no_as_of(
    drawn: list[Any], as_of: str | None
) -> None:
    answers = []
    for inferred in (False, True):
        documents = [stored(n, fields, inferred=inferred) for n, fields in enumerate(drawn)]
        bundle = answered(documents, ROLE_DATES, task="token log of the gateway", as_of=as_of)
        answers.append(outcome(bundle))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("metadata", "status", "shown"),
    [
        ({"inferred_at": RECENT}, "fresh", "fresh by the date of its file"),
        ({"inferred_at": OLD}, "stale", "stale by the date of its file"),
        ({"inferred_at": FUTURE}, "undated", "dated in the future by the date of"),
        ({"inferred_at": RECENT, "updated_at": OLD}, "stale", "stale"),
        ({"inferred_at": RECENT, "updated_at": FUTURE}, "undated", "dated in the future"),
        ({}, "undated", "undated"),
    ],
)
def test_freshness(metadata: dict[str, str], status: str, shown: str) -> None:
    [chunk] = answered([document("d", ["token rotation"], **metadata)]).selected
    assert chunk.metadata.freshness.status == status
    assert f"trust, {shown}" in " ".join(chunk.reasons_selected)


def test_staleness_rejects_and_is_explained() -> None:
    role = overlay(retrieval_policy={"freshness_max_age_days": 100, "stale_penalty": 1.0})
    [rejection] = answered([document("d", ["token rotation"], inferred_at=OLD)], role).rejected
    assert rejection.reason == "stale"
    assert "by the date of its file" in str(rejection.notes)


# -- A forbidden source is reported if one of its passages would have been selected, and only then

PROVIDER = HashingProvider()


@pytest.mark.parametrize("lexical_only", [False, True])
def test_a_forbidden_passage_among_the_best_is_reported(lexical_only: bool) -> None:
    strong = document("advert", ["token rotation, token rotation"], source_id="adverts")
    own = [document(f"ours{n}", [f"token rotation, step {n}"]) for n in range(3)]
    rules = [{"pattern": "adverts", "reason": "not evidence"}]
    role = overlay(source_policy={"forbidden_sources": rules})
    bundle = answered([*own, strong], role, PROVIDER, limit=2, lexical_only=lexical_only)
    assert bundle.fallback is not None and "forbidden_hit" in bundle.fallback.states
    assert bundle.rejected_summary["forbidden_source"] == bundle.summary.forbidden_hits == 1
    expected = "1 passage of forbidden sources would have been selected: adverts"
    assert messages(bundle, "FORBIDDEN_SOURCE_HIT") == [expected]


@few_examples
@given(
    documents=corpora(),
    role=overlays(require_source_diversity=False, diversity="soft"),
    # Whoever requires evidence learns only that there is too little.
    fields=requests(token_budget=None, lexical_only=True, evidence=None),
)
def test_it_is_what_the_role_would_get_if_it_forbade_nothing(
    documents: list[StoredDocument], role: Overlay, fields: dict[str, Any]
) -> None:
    """With the lexical lane alone, no candidate is compared with another one but for copies."""
    drawn = role.model_dump(exclude_none=True)
    drawn["source_policy"] |= {"forbidden_sources": [], "allowed_sources": []}
    governed, free = (answered(documents, each, **fields) for each in (role, overlay(**drawn)))
    assume("duplicate" not in free.rejected_summary)
    rejected = rejection_codes(governed)
    hits = [one for one in free.selected if rejected.get(one.chunk_id) == "forbidden_source"]
    found = messages(governed, "FORBIDDEN_SOURCE_HIT")
    assert len(found) == bool(hits)
    assert all(message.startswith(f"{len(hits)} passage") for message in found)
