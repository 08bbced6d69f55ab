"""What an answer says: passages, warnings, fallback, postures, missing words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.admin import Admin
from rolebundle.contracts.bundle import BundleWarning, RetrievalBundle
from rolebundle.contracts.documents import LANGUAGE
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.terms import (
    ACTIONS,
    FALLBACK_ACTIONS,
    FALLBACK_STATES,
    WARNINGS,
    Limitation,
    TrustTier,
    WarningCode,
)
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.render import text
from rolebundle.retrieval.bundle import selected_passage
from rolebundle.retrieval.evidence import Support
from rolebundle.retrieval.packet import packet
from rolebundle.retrieval.passage_text import (
    best_part,
    limited_use,
    passage_header,
    quoted,
    trust_and_dates,
    words_searched,
)
from rolebundle.retrieval.values import Candidate
from rolebundle.retrieval.verdict import decide_fallback, fallback_of
from rolebundle.retrieval.warnings import CONDITIONS, freshness_posture, trust_posture, warnings_for
from rolebundle.storage.documents import Scanned, StoredDocument
from rolebundle.workspace import Workspace
from support.bundles import messages as messages_of
from support.corpora import answered, build, chunk, document, overlay, resolved, set_policy
from support.source_tree import write_files
from support.values import (
    candidate,
    evidence,
    passage,
    ranked,
    rejected,
    retrieval,
)


def answer_passage(
    tier: Any = "authoritative",
    status: Any = "fresh",
    hits: Sequence[str] = (),
    updated_at: str | None = None,
) -> Candidate:
    """A selected passage with this trust tier, freshness, metadata hits and date."""
    of = passage(trust_tier=tier, source_id=f"{tier}-{status}", updated_at=updated_at)
    return ranked(of, freshness=status, metadata_factors=dict.fromkeys(hits, 1.0))


# -- The fallback: what the caller should do with an answer ----------------------------------------

ROLE = overlay()


@pytest.mark.parametrize(
    ("warned", "role", "degraded", "state", "action"),
    [
        ((), ROLE, "", "healthy", "continue"),
        ((), None, "", "no_overlay", "continue"),
        (("NO_HIGH_TRUST_MATCH",), ROLE, "", "no_strong_match", "degrade"),
        (("STALE_DOMINANT",), ROLE, "", "stale_dominant", "warn"),
        (("FORBIDDEN_SOURCE_HIT",), ROLE, "", "forbidden_hit", "continue"),
        (("CONFLICTING_EVIDENCE",), ROLE, "", "conflicting", "warn"),
        # A degraded lane turns `continue` into `degrade`.
        ((), ROLE, "why", "healthy", "degrade"),
        ((), None, "why", "no_overlay", "degrade"),
        (("FORBIDDEN_SOURCE_HIT",), ROLE, "why", "forbidden_hit", "degrade"),
    ],
)
def test_each_state(
    warned: tuple[WarningCode, ...], role: Overlay | None, degraded: str, state: str, action: str
) -> None:
    warnings = [BundleWarning(code=code, message="m") for code in warned]
    answer = retrieval(resolved(role), [answer_passage()], semantic_problem=degraded)
    found = decide_fallback(warnings, answer)
    assert (found.state, found.action) == (state, action)


@given(
    st.lists(
        st.builds(
            Limitation,
            st.none() | st.sampled_from(FALLBACK_STATES[:-1]),
            st.sampled_from(FALLBACK_ACTIONS),
            st.sampled_from(["", "why"]),
        ),
        max_size=6,
    )
)
def test_no_state_hides_another_one(findings: list[Limitation]) -> None:
    found = fallback_of(findings)
    named = {finding.state for finding in findings} - {None}
    assert set(found.states) == (named or {"healthy"})
    assert found.states == sorted(found.states, key=FALLBACK_STATES.index)
    assert found.state == found.states[0]
    strictness = [FALLBACK_ACTIONS.index(finding.action) for finding in findings]
    assert FALLBACK_ACTIONS.index(found.action) == max(strictness, default=0)
    told = [
        finding
        for finding in findings
        if finding.action != "continue" or found.action == "continue"
    ]
    assert found.message.count("why") == sum(finding.sentence == "why" for finding in told)


class TestNoDocuments:
    """Why there is no document to search: what is true, without what is hidden."""

    @pytest.mark.parametrize("documents", [[], [document("salary", ["the plan"], scope="hr")]])
    def test_under_a_policy_it_does_not_say_whether_there_are_others(
        self, tmp_path: Path, documents: list[StoredDocument]
    ) -> None:
        db = build(tmp_path, documents)
        set_policy(db, {"ada": {"scopes": ["engineering"], "access_level": "internal"}})
        assert self.reason(db, "ada") == (
            "this agent sees no document here: ask the owner of the corpus"
        )

    def test_only_quarantined_documents(self, tmp_path: Path) -> None:
        plain = document("plan", ["the plan"])
        scanned = Scanned("quarantine", "hash", '["secret"]', "[]", "")
        db = build(tmp_path, [StoredDocument(plain.metadata, plain.chunks, scanned)])
        assert self.reason(db) == (
            "1 document in quarantine and no other: see `rolebundle corpus quarantine list`"
        )

    @staticmethod
    def reason(db: Path, agent: str | None = None) -> str:
        with Engine(db) as engine:
            bundle = engine.retrieve(RetrievalRequest(task="plan", agent=agent, lexical_only=True))
        return bundle.fallback.message.split("; ")[0]


# -- The warnings of an answer, each with its rule and its message ---------------------------------

ROLE_WARNINGS = overlay(vocabulary={"preferred_terms": ["rotation"]})
ROLE_OF_A_YEAR = overlay(
    vocabulary={"preferred_terms": ["rotation"]}, retrieval_policy={"freshness_max_age_days": 365}
)
OWN = "boost:domain(security×2)"
SOUND = [answer_passage(hits=(OWN,)), answer_passage("preferred", hits=(OWN,))]
IGNORED = passage("a", document_id="d", ignored_claims=("mail", "note"))


def codes(
    selected: Sequence[Candidate],
    counts: dict[Any, int] | None = None,
    role: Overlay | None = None,
    task: str = "token rotation",
    **fields: Any,
) -> dict[str, str]:
    """Code → message of each warning about an answer with these passages.

    Args:
        selected: the passages.
        counts: rejection code → number of candidates.
        role: the overlay.
        task: of the request.
        fields: of the retrieval.
    """
    request = resolved(role, task=task)
    found = warnings_for(
        retrieval(
            request,
            selected,
            evidence=evidence({row.passage.rowid: {0, 1} for row in selected}),
            candidates=[
                *(candidate(passage(source_id=source)) for source in ("w", "v")),
                *(rejected(code) for code, count in (counts or {}).items() for _ in range(count)),
            ],
            **fields,
        )
    )
    assert len({warning.code for warning in found}) == len(found)
    return {warning.code: warning.message or "" for warning in found}


class TestWarnings:
    def test_each_has_a_condition(self) -> None:
        assert {*CONDITIONS} == {*WARNINGS}

    @pytest.mark.parametrize(
        ("selected", "fields", "expected"),
        [
            (SOUND, {}, {}),
            ([], {}, {"NO_HIGH_TRUST_MATCH": None}),
            ([answer_passage("general", hits=(OWN,))], {}, {"NO_HIGH_TRUST_MATCH": None}),
            # A trust tier and an age speak for every role alike.
            ([answer_passage(hits=("boost:trust-tier(authoritative×2)", "penalty:stale(9d > 1d)"))],
             {}, {"ONLY_SHARED_CORPUS": None}),
            (SOUND, {"counts": {"taint_blocked": 2}},
             {"ACTION_RESTRICTED": "passages not trusted enough for the action: 2"}),
            (SOUND, {"counts": {"requires_approval": 3}},
             {"ACTION_RESTRICTED": "passages that need an approval for the action: 3"}),
            (SOUND, {"counts": {"forbidden_source": 2}}, {}),
            (SOUND, {"best_forbidden": [candidate(passage(source_id=name)) for name in "wvw"]},
             {"FORBIDDEN_SOURCE_HIT":
              "3 passages of forbidden sources would have been selected: v, w"}),
            # An ignored claim is reported once.
            ([*SOUND, *map(ranked, [IGNORED, IGNORED, passage("b")])], {},
             {"SUPERSEDE_IGNORED": "mail claims to supersede d, but may not; "
                                   "note claims to supersede d, but may not"}),
            (SOUND, {"semantic_problem": "no model"}, {"SEMANTIC_LANE_DEGRADED": "no model"}),
        ],
    )  # fmt: skip
    def test_each_rule(
        self, selected: list[Candidate], fields: dict[str, Any], expected: dict[str, str | None]
    ) -> None:
        found = codes(selected, role=ROLE_WARNINGS, **fields)
        assert found.keys() == expected.keys()
        assert all(message in (None, found[code]) for code, message in expected.items())

    def test_index_stale_with_the_number_of_missing_vectors(self) -> None:
        message = codes(SOUND, role=ROLE_WARNINGS, without_vector=7)["INDEX_STALE"]
        assert message.startswith("7 chunks")

    def test_stale_dominant_over_a_half(self) -> None:
        stale = answer_passage(status="stale", hits=(OWN,), updated_at="2020-01-01T00:00:00Z")
        assert "STALE_DOMINANT" not in codes([*SOUND, stale, stale], role=ROLE_OF_A_YEAR)
        found = codes([*SOUND, stale, stale, stale], role=ROLE_OF_A_YEAR)
        assert found["STALE_DOMINANT"] == "stale passages: 3 of 5"

    def test_nothing_is_stale_if_nobody_set_a_maximum_age(self) -> None:
        stale = answer_passage(status="stale", hits=(OWN,), updated_at="2020-01-01T00:00:00Z")
        assert "STALE_DOMINANT" not in codes([stale] * 3, role=ROLE_WARNINGS)
        assert "STALE_DOMINANT" not in codes([stale] * 3, role=None)

    @pytest.mark.parametrize(
        ("task", "is_warned"),
        [
            ("Who were the members in 2017?", False),
            ("What was decided in 2018 and in March 2019?", False),
            ("Who were the members on 2018-03-01?", False),
            ("Who were the members in 2019?", True),
            ("Who are the members?", True),
            ("Who was a member since 2017?", True),
            ("Compare 2017 with 2026", True),
            ("Does ISO 9001:2015 hold?", True),
        ],
    )
    def test_what_is_of_the_past_that_the_task_names_is_not_too_old(
        self, task: str, *, is_warned: bool
    ) -> None:
        old = answer_passage(status="stale", hits=(OWN,), updated_at="2018-05-01T00:00:00Z")
        assert ("STALE_DOMINANT" in codes([old], role=ROLE_OF_A_YEAR, task=task)) is is_warned

    def test_at_most_five_conflicts_and_the_number_of_the_others(self) -> None:
        others = [passage(f"b{n}", contradicts=("doc-a",)) for n in range(7)]
        selected = [*map(ranked, [passage("a"), *others])]
        message = codes(selected, role=ROLE_WARNINGS)["CONFLICTING_EVIDENCE"]
        assert message.startswith("a and b0 disagree, as one of their documents declares; ")
        assert message.count("a and b") == 5
        assert message.endswith("; so do 2 further pairs of documents")


def test_weak_evidence_comes_first_and_says_how_many_words_the_best_passage_has() -> None:
    request = resolved(ROLE_WARNINGS, task=" ".join(f"word{n}" for n in range(9)))
    thin = evidence({1: {0}}, frequencies=(1,) * 9, chunks=999)
    best = ranked(passage(rowid=1, trust_tier="authoritative"))
    answer = retrieval(request, [best], evidence=thin)
    warning, *others = warnings_for(answer)
    assert warning.code == "WEAK_EVIDENCE"
    assert "1 of the task's 9 words" in (warning.message or "")
    fallback = decide_fallback([warning, *others], answer)
    assert warning.message in fallback.message
    assert fallback.action == "warn"


# -- What an answer shows of a selected passage ----------------------------------------------------

NO_SUPPORT = Support(0, 2, 0.0, None)
"""What a passage has of a task of two words if it has none of them."""


def test_a_selected_passage_has_its_reason_and_the_overlays_maximum_age() -> None:
    role = overlay(retrieval_policy={"freshness_max_age_days": 30.0})
    of_role = ranked(passage(), bm25=0.0, bm25_expansion=3.0, lexical=0.0)
    chosen = selected_passage(1, of_role, resolved(role), NO_SUPPORT)
    assert chosen.reasons_selected[0] == "has the role's words"
    assert chosen.metadata.freshness.max_age_days == 30


# -- Words of the task: those that no passage has, exact ones, misspelled ones, and other wordings

TEXTS = [f"configure the server with a file number{n}" for n in range(8)]
SERVER = document("d", TEXTS)


def messages(bundle: RetrievalBundle) -> dict[str, str]:
    return {warning.code: warning.message or "" for warning in bundle.warnings}


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("configure the server", []),
        ("configure Kubernetes autoscaling for the server", ["Kubernetes"]),
        ("Where do I configure Zorblax for the server?", ["Zorblax"]),
        ("configure the server E4711", ["E4711"]),
        ("Where do I configure the server for Dad, Grandma and the Board?", []),
        ("configure the server with --retry-limit=3", ["--retry-limit"]),
        # That a word or an amount is missing says little.
        ("configure many servers for 70 clients with upper/lower case and no licence", []),
        ("Wie wird der Server für Mandanten konfiguriert?", []),
        # A compound of German is exact; not if a passage has its parts, or it in another form.
        ("Was sagt der Server zur Legionellenprüfung?", ["Legionellenprüfung"]),
        ("Wo ist die Serverconfiguration?", []),
        ("Comment configurer le server de Zorblax ?", ["Zorblax"]),
        ("¿Cómo se configura el server en Ávila?", ["Ávila"]),
        ("Jak skonfigurować server w Zorblaxie?", ["Zorblaxie"]),
    ],
)
def test_names_and_identifiers_that_no_passage_has_are_a_caution(
    task: str, missing: list[str]
) -> None:
    bundle = answered([SERVER], task=task, limit=2)
    message = messages(bundle).get("WORDS_MISSING", "")
    assert bool(message) == bool(missing)
    assert all(word in message for word in missing)
    is_weak = "WEAK_EVIDENCE" in messages(bundle)
    assert (bundle.fallback.action == "warn") == bool(missing or is_weak)
    assert message in text(bundle, 500)


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("configure the server with a file", ""),
        ("configure the server with a file this year", ""),  # Common words say little.
        ("configure the server with a nice file", ""),
        ("configure the current server", ""),
        ("Wo ist der aktuelle Server, und welche file war zuletzt number1?", ""),
        ("Comment configurer le dernier server avec un file aujourd'hui ?", ""),
        ("configure the server with a file in Zorblax", "Zorblax"),
        ("configure the server with a file of Invoice", "Invoice"),
        ("configure the 4th server with a file", ""),
        ("Comment configurer le 4e server avec un file ?", ""),
        # Texts write the days and months in many ways.
        ("configure the server with a file on Monday in December", ""),
        ("configure the server with a file on Saturdays or Sonnabends", ""),
        ("Comment configurer le server avec un file les Samedis ?", ""),
        ("configure the servar with a file", ""),  # A likely spelling is searched.
        # Documents say ordinary words in other words.
        ("When was the turbine of the server inspected?", ""),
        ("Welche Turbine hat der Server?", ""),
        ("Welche Serverturbine hat das file?", "Serverturbine"),
        ("Welcher Fileserver hat das file?", ""),
    ],
)
def test_names_that_no_passage_has_are_named(task: str, named: str) -> None:
    bundle = answered([SERVER], task=task, limit=2)
    caution = messages(bundle).get("WORDS_MISSING", "")
    assert caution == (f"no passage mentions: {named}" if named else "")
    assert not named or f"Caution: {caution}." in packet(bundle)
    assert (bundle.fallback.action == "warn") == bool(caution)


class TestExact:
    """What is quoted, numbers and identifiers can only be meant exactly."""

    MIN_CHUNKS_OF_SPELLING = document(
        "often", [f"restart the pump after an alarm{' again' * n}" for n in range(6)]
    )
    OTHERS = document("others", [f"the weather is slow to start, day{n}" for n in range(90)])

    @pytest.mark.parametrize(
        ("word", "content"),
        [
            ("6260", "the fault 6260 is of the valve"),
            ("E_OVERHEAT", "E_OVERHEAT"),
            ("pumpControl", "pumpControl is a class"),
            ("src/pump.py", "see src/pump.py"),
            ('"slow start"', "a slow start"),
        ],
    )
    @pytest.mark.parametrize("has_role", [False, True])
    def test_a_rare_one_is_in_the_first_three_passages(
        self, word: str, content: str, has_role: bool
    ) -> None:
        role = overlay(source_policy={"document_type_boosts": {"manual": 0.01}})
        far = "words about other things " * 30
        rare = document("rare", [f"{content} {far}"], document_type="manual")
        task = f"restart the pump after an alarm {word}"
        documents = [self.MIN_CHUNKS_OF_SPELLING, self.OTHERS, rare]
        bundle = answered(documents, role if has_role else None, task=task)
        first = [passage.document_id for passage in bundle.selected[:3]]
        assert first == ["often", "often", "rare"]
        assert "WORDS_MISSING" not in messages(bundle)

    @pytest.mark.parametrize("word", ["6261", "E_COLD", "pumpState", '"slow stop"'])
    def test_one_that_no_passage_has_is_named(self, word: str) -> None:
        bundle = answered([self.MIN_CHUNKS_OF_SPELLING], task=f"restart the pump {word}")
        assert word.strip('"') in messages(bundle)["WORDS_MISSING"]


def test_a_misspelled_word_is_searched_as_a_known_one_too_and_the_answer_says_so() -> None:
    once = document("once", ["configure the server"])
    bundle = answered([once], task="konfigure servar", limit=1)
    assert bundle.selected
    found = messages(bundle)
    assert "server for servar" in found["WORDS_CORRECTED"]
    assert "servar" not in found.get("WORDS_MISSING", "")


@pytest.mark.parametrize(
    ("stored", "task", "expected"),
    [
        ("You would store it in the cellar", "mould", ""),
        ("You should read which form it is", "whcih form", "which for whcih"),
        ("You should read which form it is", "wich form", "which for wich"),
        ("The quote is of the shop", "quoter of the shop", ""),
        ("The fair ends at eight", "lends benches", ""),
        ("The shop has notices", "novices of the club", ""),
        ("The water is cold", "zwater", ""),
    ],
)
def test_a_function_word_or_another_form_is_no_likely_spelling(
    stored: str, task: str, expected: str
) -> None:
    bundle = answered([document("once", [stored, f"{stored} again"])], task=task)
    message = messages(bundle).get("WORDS_CORRECTED", "")
    assert message.endswith(expected)
    assert bool(message) == bool(expected)


def test_who_does_something_is_found_where_it_is_done() -> None:
    roof = document("roof", ["Zander roofed the house.", "The roof is flat."])
    bundle = answered([roof, LETTERS], task="who are the roofers", limit=2)
    assert [passage.document_id for passage in bundle.selected] == ["roof", "roof"]
    assert not messages(bundle)


LETTER = (
    "Die Nachzahlung und die Rechnung werden bis Mai erhoben, und das Ergebnis gilt. Es gibt alte."
)
LETTERS = document("briefe", [f"{LETTER} Bei uns ist der Kessel kaputt{n}." for n in range(4)])


@pytest.mark.parametrize(
    ("stored", "task", "corrections"),
    [
        (LETTERS, "Wann ist die nachzalung fällig?", "nachzahlung for nachzalung"),
        (LETTERS, "Wo liegt die rehcnung?", "rechnung for rehcnung"),
        # Correct words of another language, and other forms.
        (LETTERS, "Was gibt viel, und was muss raus?", ""),
        (LETTERS, "Hat die Messung etwas ergeben und wann wird erhoben?", ""),
        (LETTERS, "Was steht in den neuen rechnungen und den alten?", ""),
        (LETTERS, "Wo ist der sessel?", ""),
        (SERVER, "Comment configurer les serveur ?", ""),
        (SERVER, "Wann muss der Filter raus?", ""),
        # Function words of other languages in an English task.
        (SERVER, "muss viel", ""),
    ],
)
def test_correct_words_of_another_language_are_not_corrected(
    stored: StoredDocument, task: str, corrections: str
) -> None:
    message = messages(answered([stored], task=task)).get("WORDS_CORRECTED", "")
    assert message.endswith(corrections)
    assert bool(message) == bool(corrections)


@pytest.mark.parametrize("word", ["serverless", "Servar", "serv4r"])
def test_other_words_and_names_are_as_they_are(word: str) -> None:
    found = messages(answered([SERVER], task=f"configure the {word}"))
    assert "WORDS_CORRECTED" not in found
    assert ("WORDS_MISSING" in found) == (word != "serverless")


# -- Evidence kinds that a role requires, and passages that are for a bridge role ------------------


def requiring(stored: StoredDocument, *kinds: str) -> RetrievalBundle:
    role = overlay(synthesis_policy={"required_evidence_kinds": [*kinds]})
    return answered([stored], role, task="token")


def missing(bundle: RetrievalBundle) -> list[str]:
    return messages_of(bundle, "EVIDENCE_KIND_MISSING")


def with_headings(*headings: str) -> StoredDocument:
    plain = document("d", ["token"])
    return StoredDocument(plain.metadata, (chunk("d#0", "token", headings=headings),), None)


@pytest.mark.parametrize(
    ("stored", "kinds"),
    [
        (document("d", ["token"], document_type="abuse-case"), ["abuse-case"]),
        (document("d", ["token"], document_type="Abuse Cases"), ["abuse-case"]),
        (document("d", ["token"], tags=("x", "abuse_case")), ["abuse-case"]),
        (document("d", ["token"], attributes=(("evidence_kind", ("other", "abuse case")),)),
         ["abuse-case"]),
        (with_headings("Abuse cases"), ["abuse-case"]),
        (with_headings("Threats", "3. Known abuse cases (draft)", "T1"), ["abuse-case"]),
        (document("abuse-case", ["token abuse case"], title="Abuse case"), None),
        (document("d", ["token"], document_type="abuse", tags=("case",)), None),
        (document("d", ["token"], document_type="misabuse-case"), None),
        (document("d", ["token"], tags=("case of abuse",)), None),
        (document("d", ["token"], attributes=(("kind", ("abuse-case",)),)), None),
    ],
)  # fmt: skip
def test_which_documents_show_a_kind(stored: StoredDocument, kinds: list[str] | None) -> None:
    bundle = requiring(stored, "finding", "abuse-case")
    assert [chunk.evidence_kinds for chunk in bundle.selected] == [kinds]
    lacking = "finding" if kinds else "finding, abuse-case"
    assert missing(bundle) == [f"no passage shows what the role requires: {lacking}"]


def test_every_text_names_what_is_missing() -> None:
    bundle = requiring(document("d", ["token"]), "proof\n## of\x1b[2J", " ")
    message = "no passage shows what the role requires: proof ## of [2J"
    assert missing(bundle) == [message]
    for form in (text(bundle), packet(bundle)):
        assert message in form


# -- Notes about a passage, and the line above it --------------------------------------------------


@pytest.mark.parametrize(
    ("task", "also", "note"),
    [
        (
            "Until when can I end the contract with the laundry?",
            (),
            "2 documents in German, 1 document in Spanish",
        ),
        (
            "Until when can I end the contract?",
            ("Kündigung der Wäscherei",),
            "1 document in Spanish",
        ),
        (
            "Bis wann kann die Leitung den Contract kündigen?",
            (),
            "4 documents in English, 1 document in Spanish",
        ),
        ("Where does the Zorblax dwell?", (), "2 documents in German, 1 document in Spanish"),
    ],
)
def test_languages_of_documents_that_no_wording_is_in_are_named(
    tmp_path: Path, task: str, also: tuple[str, ...], note: str
) -> None:
    texts = {
        "de": "Die Wäscherei holt die Wäsche am Montag, und sie ist am Freitag wieder da.",
        "es": "Los trabajos que no se han terminado en la fecha se pagarán con el resto.",
        "en": "The contract for the linen that is on the first floor ends in May.",
    }
    names = ("de", "de", "es", "en", "en", "en", "en")
    files = {f"{n}.md": texts[name] for n, name in enumerate(names)}
    files["3.md"] += "\n\n| el | la | los |\n|---|---|---|\n| 1 | 2 | 3 |\n"
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([write_files(tmp_path / "f", files)], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        answer = engine.retrieve(RetrievalRequest(task=task, also=list(also)))
    said = " ".join([answer.fallback.message, *(w.message or "" for w in answer.warnings)])
    assert note in said
    assert said.count(" in Spanish") == 1


def test_words_of_another_language_that_they_do_not_show_ask_in_it() -> None:
    text = "Die Wäscherei holt die Wäsche am Montag, und sie ist sauber."
    documents = [document("w", [text], attributes=((LANGUAGE, ("de",)),))]
    noted = [
        "OTHER_LANGUAGES"
        in {w.code for w in answered(documents, task="laundry pick-up", also=also).warnings}
        for also in ([], ["Wäscherei Abholung"], ["washing collection"])
    ]
    assert noted == [True, False, True]


def test_a_table_with_few_words_is_not_called_english() -> None:
    rows = "Piatto | Frutta a guscio | Torta in forno\nPici | no | sì | no\nPane | no | no | no"
    event = "when: lunedì\nwhere: frantoio\nCorso di pici con il cuoco, a coppie"
    documents = [document("scheda", [rows]), document("calendario", [event])]
    answer = answered(documents, None, task="Che cosa mangiamo con i pici?")
    assert "OTHER_LANGUAGES" not in {warning.code for warning in answer.warnings}


@pytest.mark.parametrize(
    ("task", "also"),
    [
        ("cash per month of Zorblaxhilfehaus", "Was ist mit der Wäsche am Montag?"),
        ("Was ist mit dem Zorblaxhilfehaus am Montag?", "What is said of the laundry?"),
    ],
)
def test_no_language_is_named_in_which_a_wording_is(task: str, also: str) -> None:
    german, english = "Die Wäsche ist am Montag hier, und sie ist gut", "This is what we said of it"
    documents = [document(f"d{n}", [f"{(german, english)[n % 2]} {n}."]) for n in range(8)]
    message = answered(documents, task=task, also=[also]).fallback.message
    assert "Zorblaxhilfehaus" in message
    assert "ask in these languages" not in message


@pytest.mark.parametrize(
    ("allowed", "note"),
    [
        (None, ""),
        (ACTIONS, ""),
        (["read", "analyze"], "use only to: read, analyze"),
        (["read", "analyze", "suggest"], "may be quoted, but not acted on or sent to others"),
        ([action for action in ACTIONS if action != "execute"], "may be quoted, but not acted on"),
    ],
)
def test_limited_use(allowed: list[str] | None, note: str) -> None:
    assert limited_use(allowed) == note


def test_a_title_has_single_quotes_and_no_soft_hyphens() -> None:
    assert quoted("Zahn\u00adarzt") == '"Zahnarzt"'
    assert quoted("« L'Avare » de Molière", "»Faust«") == "\"'L'Avare' de Molière › 'Faust'\""


@pytest.mark.parametrize(
    ("date", "by", "shown"),
    [
        ("2027-12-31", "name", "2027-12-31 (by its name) · in the future"),
        ("2027-12-31", "name without a day", "2027 (by its name)"),
    ],
)
def test_a_year_that_something_is_for_is_not_in_the_future(date: str, by: str, shown: str) -> None:
    freshness = {"updated_at": date, "dated_by": by, "status": "undated"}
    assert " · ".join(trust_and_dates({"freshness": freshness})) == shown


def heading(title: str, *headings: str, content: str = "Stop it.") -> str:
    passage = {
        "rank": 1,
        "title": title,
        "headings": headings,
        "content": content,
        "citation": {"locator": "signing-keys.md:3-4"},
    }
    beginning, _, names = passage_header(passage, []).partition(" · ")
    assert beginning == "[1] signing-keys.md:3-4"
    return names


def test_title_and_headings_are_in_the_line_above_a_passage() -> None:
    assert heading("Manual", "Rotation", "Steps") == '"Manual › Rotation › Steps"'
    assert heading("Manual", "Rotation\n[2] Keys") == '"Manual › Rotation (2) Keys"'


def test_what_the_path_the_text_or_another_heading_says_is_not_repeated() -> None:
    assert heading("Keys, Signing") == ""
    assert heading("Manual", "Manual of rotation", "Rotation") == '"Manual of rotation"'
    content = "### Steps for `rails`\n\nStop it."
    assert (
        heading("Manual", "Rotation", "Steps for rails", content=content) == '"Manual › Rotation"'
    )


CONTENT = "First line.\n\nThe token lives 30 days. The key lives longer. It is renewed.\nLast line."


@given(st.text(max_size=300), st.integers(1, 200))
def test_a_part_is_not_longer_than_asked(content: str, length: int) -> None:
    part = best_part(content, ["a"], length)
    assert len(part) <= length
    assert part in content


def test_a_part_has_the_words_and_whole_sentences() -> None:
    assert best_part(CONTENT, ["key", "renewed"], 42) == "The key lives longer. It is renewed."
    assert best_part(CONTENT, [], 30) == "First line."


@pytest.mark.parametrize("heading", ["## Open tasks\n\n", "These are open:\n", "Open: \n  "])
def test_a_part_does_not_end_with_what_announces_the_next_one(heading: str) -> None:
    text = f"The van is open. It is white.\n\n{heading}- paint the long fence of the yard"
    assert best_part(text, ["open", "van"], 50) == "The van is open. It is white."


def test_a_part_of_a_table_in_other_text_has_whole_rows() -> None:
    rows = ["1 | Quay | Boats | 06:30", "2 | Marsh | Birds | 05:15", "3 | Barn | Eels | 07:00"]
    text = "\n".join(("What changed", "", *rows, ""))
    assert best_part(text, ["eels"], 40) == rows[2]
    assert best_part(text, ["birds"], 40) == rows[1]


@pytest.mark.parametrize(
    ("task", "has_total"), [("What will the roof cost us?", True), ("Who does the roof?", False)]
)
def test_a_part_has_the_total_if_a_sum_is_asked(task: str, has_total: bool) -> None:
    text = "Our roof, and who works on the roof: us.\n\nThe scaffold stands.\n\nTotal: 91,250 EUR"
    assert ("91,250" in best_part(text, words_searched(["roof", "us"], task), 40)) is has_total


@pytest.mark.parametrize(
    "sentence",
    [
        "Unser Schreiben vom 4. Mai 2026 ersetzt das Angebot.",
        "Das Angebot gilt bis zum 2. Termin im Saal.",
        "Das Angebot gilt für Köln, 13. bis 17. Mai.",
        "1. The offer of Dr. Moss replaces No. 5, i.e. Mr. Lee's.",
    ],
)
def test_a_number_of_a_day_or_an_abbreviation_ends_no_sentence(sentence: str) -> None:
    text = f"This is before the others. {sentence} And another one follows, which has no such word."
    assert best_part(text, ["offer", "angebot"], len(sentence) + 10) == sentence


# -- Postures: how far an answer can be trusted, and how current it is -----------------------------


@pytest.mark.parametrize(
    ("tiers", "posture"),
    [
        (["untrusted", "authoritative"], "strong"),
        (["authoritative", "preferred"], "strong"),
        (["general", "preferred"], "mixed"),
        (["general"], "weak"),
        (["untrusted"], "weak"),
        ([], "weak"),
    ],
)
def test_strong_with_any_authoritative_mixed_with_any_preferred_else_weak(
    tiers: list[str], posture: str
) -> None:
    assert trust_posture([answer_passage(tier) for tier in tiers]) == posture


@pytest.mark.parametrize(
    ("statuses", "posture"),
    [
        (["fresh"], "fresh"),
        (["fresh", "aging", "undated"], "fresh"),
        (["fresh", "stale"], "mixed"),
        (["aging"], "mixed"),
        (["undated"], "mixed"),
        (["stale", "aging"], "stale"),
        (["stale"], "stale"),
        ([], "mixed"),
    ],
)
def test_fresh_mixed_or_stale(statuses: list[str], posture: str) -> None:
    assert freshness_posture([answer_passage(status=status) for status in statuses]) == posture


@pytest.mark.parametrize(
    ("date", "tier", "message"),
    [
        ("2026-11-01T00:00:00Z", "preferred", "recent passages, some from trusted documents"),
        (None, "preferred", "passages of mixed or unknown age, some from trusted documents"),
        ("2019-11-01T00:00:00Z", "preferred",
         "passages of which some are old and none is recent, some from trusted documents"),
        ("2026-11-01T00:00:00Z", "general",
         "recent passages; no document of the corpus declares trust"),
    ],
)  # fmt: skip
def test_a_sound_answer_says_what_dates_and_trust_its_passages_have(
    date: str | None, tier: str, message: str
) -> None:
    stored = document("d", ["a token"], updated_at=date, trust_tier=tier)
    fallback = answered([stored], task="token").fallback
    assert (fallback.action, fallback.message) == ("continue", message)


# -- A corpus in which nothing declares trust cannot have a match of high trust --------------------


@pytest.mark.parametrize(
    ("tier", "elsewhere", "is_warned"),
    [
        ("general", "general", False),
        ("general", "untrusted", False),
        ("general", "authoritative", True),
        ("general", "preferred", True),
        ("untrusted", "general", True),
    ],
)
def test_the_warning_needs_a_declaration(
    tier: TrustTier, elsewhere: TrustTier, is_warned: bool
) -> None:
    documents = [
        document("answer", ["token rotation"], trust_tier=tier),
        document("other", ["bread and flour"], trust_tier=elsewhere),
    ]
    bundle = answered(documents, overlay())
    assert [chunk.document_id for chunk in bundle.selected] == ["answer"]
    codes = {warning.code for warning in bundle.warnings}
    assert ("NO_HIGH_TRUST_MATCH" in codes) == is_warned
    assert (bundle.fallback.action == "degrade") == is_warned
    assert bundle.provenance.trust_posture == ("weak" if is_warned else "undeclared")


@pytest.mark.parametrize(
    ("tier", "trusted", "has_role", "is_warned"),
    [
        ("general", 1, False, False),
        ("general", 1, True, True),
        ("general", 6, False, True),
        ("untrusted", 1, False, True),
    ],
)
def test_without_a_role_one_trusted_document_says_nothing_of_the_others(
    tier: TrustTier, trusted: int, has_role: bool, is_warned: bool
) -> None:
    others = [
        document(f"d{n}", ["token of bread"], trust_tier="preferred" if n < trusted else "general")
        for n in range(12)
    ]
    documents = [document("answer", ["token rotation"], trust_tier=tier), *others]
    bundle = answered(documents, overlay() if has_role else None, limit=1)
    assert bundle.selected[0].document_id == "answer"
    assert ("NO_HIGH_TRUST_MATCH" in {warning.code for warning in bundle.warnings}) == is_warned
