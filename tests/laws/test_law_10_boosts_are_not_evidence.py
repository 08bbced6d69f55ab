"""Law 10. Boosts are not evidence.

- Every selected passage says whether it is there for the task or only for the role. It is there for
  the task if it has the task's words or is close in meaning, by its raw figures, or if there is no
  role.
- What the task's words are worth does not depend on the role (nor on what the agent may not see,
  which law 9 shows).
- If the evidence is thin, the answer says so before everything else. Passages are withheld only if
  no word of the task occurs and nothing is close in meaning, whatever the role prefers, or if the
  overlay or the request requires evidence.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.overlay import Overlay
from rolebundle.embedding.provider import EmbeddingProvider
from rolebundle.embedding.static import StaticProvider
from rolebundle.retrieval.evidence import ENOUGH_CLOSENESS, ENOUGH_COVERAGE
from rolebundle.retrieval.values import POOL_DEPTH
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests

PROVIDER = HashingProvider()
STATIC = StaticProvider()
LANES = pytest.mark.parametrize("provider", [None, STATIC], ids=["words", "both lanes"])

roles = st.none() | overlays()


def codes(bundle: RetrievalBundle) -> list[str]:
    return [warning.code for warning in bundle.warnings]


# -- (a) every passage says what it is there for ---------------------------------------------------


@few_examples
@given(documents=corpora(least=1), role=roles, fields=requests())
@example(
    documents=[
        document("d0", ["audit the token", "a threat model", "the threat of a release"]),
        document("d1", ["another threat model"], trust_tier="authoritative"),
    ],
    role=overlay(vocabulary={"boost_phrases": ["threat model"]}),
    fields={"task": "audit the token", "lexical_only": True},
)
def test_every_selected_passage_says_what_it_is_there_for(
    folder: Path, documents: list[StoredDocument], role: Overlay | None, fields: dict[str, Any]
) -> None:
    with built(folder, documents, PROVIDER) as corpus:
        bundle = ask(corpus, role, PROVIDER, **fields)
    assert_reasons_of_passages(bundle, role)
    if role is None:
        assert bundle.evidence.role_share == 0


def assert_reasons_of_passages(bundle: RetrievalBundle, role: Overlay | None) -> None:
    for passage in bundle.selected:
        raw = passage.raw
        # The BM25 of a word that all have is nearly 0, and rounded.
        assert not raw.matched_words or raw.bm25 is not None, "words without a BM25"
        assert (raw.closeness is None) == (raw.cosine is None)
        has_evidence = raw.coverage >= ENOUGH_COVERAGE or (raw.closeness or 0) >= ENOUGH_CLOSENESS
        assert passage.evidence == ("task" if role is None or has_evidence else "role")
        assert bundle.evidence.words >= raw.matched_words
    if all(passage.evidence == "role" for passage in bundle.selected):
        assert bundle.provenance.trust_posture in ("weak", "undeclared")
    assert_cautioned(bundle)


def assert_cautioned(bundle: RetrievalBundle) -> None:
    is_thin = bool(bundle.selected) and bundle.evidence.support != "supported"
    assert ("WEAK_EVIDENCE" in codes(bundle)[:1]) == is_thin
    assert not is_thin or bundle.fallback is None or bundle.fallback.action != "continue"


# -- (b) the role has no say in what the words are worth -------------------------------------------


@few_examples
@given(
    documents=corpora(),
    first_role=overlays(),
    second_role=overlays(),
    fields=requests(limit=None),
    limit=st.integers(1, 12),
)
def test_what_the_words_are_worth_does_not_depend_on_the_role(
    folder: Path,
    documents: list[StoredDocument],
    first_role: Overlay,
    second_role: Overlay,
    fields: dict[str, Any],
    limit: int,
) -> None:
    with built(folder, documents, PROVIDER) as corpus:
        answers = [
            ask(corpus, role, PROVIDER, limit=limit, **fields)
            for role in (None, first_role, second_role)
        ]
    assert_same_evidence(answers)


def assert_same_evidence(answers: Sequence[RetrievalBundle]) -> None:
    # The first passages, by which the task is judged, are those of the role's ranking.
    evidence = [bundle.evidence for bundle in answers]
    found = [(of.words, of.specificity, of.support == "off_topic") for of in evidence]
    assert found == found[:1] * len(found)


@LANES
def test_it_does_not_depend_on_what_the_role_adds_to_a_large_pool(
    folder: Path, provider: EmbeddingProvider | None
) -> None:
    # Each lane is full, and the role proposes chunks that the task does not.
    crowd = POOL_DEPTH + 30
    documents = [
        document("tokens", [f"token rotation x{n}" for n in range(crowd)]),
        document("models", [f"threat model of the token y{n}" for n in range(crowd)]),
    ]
    preferring = [
        overlay(
            vocabulary={"boost_phrases": ["threat model"]},
            source_policy={"domain_boosts": {"general": boost}},
        )
        for boost in (0.01, 100.0)
    ]
    with built(folder, documents, provider) as corpus:
        for task in ("token rotation", "rotate a threat to the puppy"):
            fields: dict[str, Any] = {"task": task, "limit": 3}
            answers = [ask(corpus, role, provider, **fields) for role in (None, *preferring)]
            assert_same_evidence(answers)
            assert answers[1].summary.total_candidates > answers[0].summary.total_candidates


# -- (c) what is withheld, and why ------------------------------------------------------------------

# No word of it is in a generated corpus, nor anything like it.
FOREIGN = (
    "teach my puppy to fetch slippers",
    "sourdough bread recipe with walnuts",
    "cheap flights from Lisbon to Marrakesh",
    "wie backe ich einen Kuchen mit Kirschen",
)
AFTER_POLICY = {"low_score", "duplicate", "conflict_downrank", "budget_cut"}


@few_examples
@given(
    documents=corpora(least=1),
    role=overlays(min_score=0.0),
    fields=requests(evidence=None, token_budget=None),
)
@example(
    documents=[document("d0", ["the token is here", *(f"bread number{n}" for n in range(60))])],
    role=overlay(retrieval_policy={"min_score": 0.0}),
    fields={
        "task": "token for embassies, castles, museums, lakes and visitors",
        "lexical_only": True,
    },
)
def test_passages_are_withheld_only_if_nothing_has_the_task_or_evidence_is_required(
    folder: Path, documents: list[StoredDocument], role: Overlay, fields: dict[str, Any]
) -> None:
    with built(folder, documents, PROVIDER) as corpus:
        shown = ask(corpus, role, PROVIDER, **fields)
        strict = ask(corpus, role, PROVIDER, evidence="required", **fields)
    support = shown.evidence.support
    texts = {word for stored in documents for one in stored.chunks for word in one.content.split()}
    if texts & {"token", "audit", "kernel", "threat"} & {*fields["task"].replace(",", "").split()}:
        assert support != "off_topic"
    assert strict.evidence == shown.evidence
    assert_cautioned(shown)
    withheld = {rejected.chunk_id for rejected in shown.rejected if rejected.reason == "low_score"}
    assert not withheld or support == "off_topic"
    assert not shown.selected or support != "off_topic"
    if support == "supported":
        assert strict.selected == shown.selected
        return
    assert strict.selected == []
    outcomes = {rejected.chunk_id: str(rejected.reason) for rejected in strict.rejected}
    for rejected in shown.rejected:
        is_allowed = rejected.reason in AFTER_POLICY
        assert outcomes.pop(rejected.chunk_id) == ("low_score" if is_allowed else rejected.reason)
    assert set(outcomes.values()) <= {"low_score"}


@few_examples
@given(
    documents=corpora(),
    role=roles,
    fields=requests(task=None, also=None, lexical_only=None),
    task=st.sampled_from(FOREIGN),
    lexical_only=st.booleans(),
)
@example(
    documents=[document("d0", ["a threat model"], trust_tier="authoritative", domain="security")],
    role=overlay(
        vocabulary={"boost_phrases": ["threat model"]},
        source_policy={
            "domain_boosts": {"security": 100.0},
            "trust_tier_boosts": {"authoritative": 100.0},
        },
        retrieval_policy={
            "lexical_weight": 0.0, "semantic_weight": 0.0,
            "metadata_weight": 0.5, "rerank_weight": 0.5,
        },
    ),
    fields={},
    task=FOREIGN[0],
    lexical_only=True,
)  # fmt: skip
@example(
    documents=[document("d0", ["a threat model"], source_id="vendor-blog")],
    role=overlay(
        vocabulary={"boost_phrases": ["threat model"]},
        source_policy={"forbidden_sources": [{"pattern": "blog"}]},
    ),
    fields={},
    task=FOREIGN[1],
    lexical_only=False,
)
def test_a_task_of_which_nothing_occurs_is_answered_with_nothing_whatever_the_role_prefers(
    folder: Path,
    documents: list[StoredDocument],
    role: Overlay | None,
    fields: dict[str, Any],
    task: str,
    lexical_only: bool,
) -> None:
    fields = fields | {"task": task, "lexical_only": lexical_only}
    with built(folder, documents, None if lexical_only else STATIC) as corpus:
        bundle = ask(corpus, role, STATIC, **fields)
    if not documents:
        assert bundle.fallback.verdict == "corpus_empty"
        return
    assert_nothing_was_selected(bundle)


def assert_nothing_was_selected(bundle: RetrievalBundle) -> None:
    fallback = bundle.fallback
    assert bundle.evidence.support == "off_topic"
    assert bundle.selected == []
    assert (fallback.state, fallback.action) == ("no_strong_match", "block")
    assert bundle.provenance.trust_posture in ("weak", "undeclared")
    if fallback.verdict != "nothing_matches_where":
        assert fallback.verdict == ("no_evidence" if bundle.rejected else "nothing_found")


# -- three tasks on a corpus with a role ---------------------------------------

# Notes of a rowing club. "changed" and "October" are in several, as words are that all use.
NOTES = {
    "boats": (
        "The double scull got new riggers. Its slides have changed twice since spring.",
        "The eight was sold in October. The trailer has changed hands with it.",
        "In October we varnish oars. Whoever borrows a blade writes it into the log.",
    ),
    "rules": (
        "Since the flood nobody rows alone above the weir. The signal has changed to a horn.",
        "Life jackets are compulsory from October to April for all juniors.",
        "The outing plan closes on Thursday evening. What has changed is put on the board.",
    ),
    "money": (
        "The membership fee has not changed. It is due in October, like the berth fee.",
        "The bar made a loss in October. Prices have changed since then.",
        "The harbour authority refunded half of the mooring charge.",
    ),
    "events": (
        "The head race moves to October. The course has changed at the bridge.",
        "Coxes meet on Sunday at the slipway to walk the course.",
        "The autumn dinner is cancelled. The caterer has changed his mind.",
    ),
}
CLUB = [
    document(f"{domain}-{n}", [text], title=f"Note {n}", domain=domain, source_id=domain,
             trust_tier="preferred")
    for domain, texts in NOTES.items()
    for n, text in enumerate(texts)
]  # fmt: skip
TREASURER = overlay(
    role_id="treasurer",
    vocabulary={"boost_phrases": ["fee", "loss", "refunded"]},
    source_policy={"domain_boosts": {"money": 3.0}, "preferred_sources": [{"pattern": "money"}]},
)


@LANES
@pytest.mark.parametrize("role", [None, TREASURER], ids=["no role", "treasurer"])
def test_on_the_notes_of_a_club(
    folder: Path, role: Overlay | None, provider: EmbeddingProvider | None
) -> None:
    tasks = (
        "What has changed since October?", "Where do the coxes meet to walk the course?", FOREIGN[1]
    )  # fmt: skip
    with built(folder, CLUB, provider) as corpus:
        vague, supported, off_topic = (
            ask(corpus, role, provider, task=task, lexical_only=provider is None) for task in tasks
        )
    assert not any(
        "SEMANTIC_LANE_DEGRADED" in codes(each) for each in (vague, supported, off_topic)
    )
    # A vague task is answered for the role.
    assert_reasons_of_passages(vague, role)
    assert vague.selected and vague.evidence.support in ("weak", "supported")
    assert vague.fallback.action in ("continue", "warn")
    if role is not None:
        assert vague.selected[0].metadata.domain == "money"
        # The role's share is more than its policy says, because the task cannot choose.
        policy = role.retrieval_policy
        assert vague.evidence.role_share > policy.metadata_weight + policy.rerank_weight
    # A task with words of one passage is supported and answered by it.
    assert supported.evidence.support == "supported"
    assert supported.selected[0].document_id == "events-1"
    assert supported.selected[0].evidence == "task"
    assert_nothing_was_selected(off_topic)
