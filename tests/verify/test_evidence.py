"""What a draft says against its evidence: passages, citations, sources, statements, a judge."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolebundle.admin import Admin
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import Finding, Verification, VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError, UsageError
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.shape import shaped_bundle
from rolebundle.memory.marks import put_mark
from rolebundle.policy.overlays import ResolvedOverlay
from rolebundle.verify.judge import Judge
from rolebundle.workspace import Workspace
from support.corpora import FLAGGED, NOW, build, chunk, document, overlay, set_policy
from support.embedding_server import EmbeddingServer, Handler
from support.source_tree import write_files

# -- The passages that a draft is checked against are read again, as agent and role may see them

DRAFT = "The lifetime of an access token is fifteen minutes [1]."
TOKENS = "The lifetime of an access token is fifteen minutes."
DOCUMENTS = [
    document("tokens", [TOKENS, "Refresh tokens rotate."], scope="engineering"),
    document("rumours", ["Tokens never expire."], source_id="vendor", scope="engineering"),
    document("salary", ["The salary of Ada is secret."], scope="hr"),
    document(
        "old",
        ["Access tokens lived for an hour in those days."],
        scope="engineering",
        updated_at="2020-01-01T00:00:00Z",
    ),
]
POLICY = {"ada": {"scopes": ["engineering"], "access_level": "internal"}}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("evidence"), DOCUMENTS)


@pytest.fixture(scope="module")
def engine(db: Path) -> Iterator[Engine]:
    with Engine(db) as opened:
        yield opened


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    db = build(tmp_path_factory.mktemp("governed"), DOCUMENTS)
    set_policy(db, POLICY)
    with Engine(db) as opened:
        yield opened


def verified(
    engine: Engine, draft: str = DRAFT, role: Overlay | None = None, **fields: Any
) -> Verification:
    resolved = ResolvedOverlay(role, "digest", Path("role.json"), ()) if role else None
    return engine.verify(VerifyRequest(draft=draft, now=NOW, **fields), resolved)


def codes(answer: Verification, check: str = "sources") -> list[str]:
    return [finding.code for finding in answer.findings if finding.check == check]


@pytest.mark.parametrize("detail", ["ids", "compact", "full"])
def test_a_bundle_in_any_detail_is_evidence(engine: Engine, detail: Any) -> None:
    request = RetrievalRequest(task="lifetime of a token", lexical_only=True, now=NOW)
    bundle = shaped_bundle(engine.retrieve(request), detail)
    answer = verified(engine, bundle=bundle)
    assert [(p.number, p.chunk_id) for p in answer.passages] == [
        (passage["rank"], passage["chunk_id"]) for passage in bundle["selected"]
    ]
    assert answer.passages
    assert codes(answer) == []


def test_a_shortened_content_is_not_a_changed_one(engine: Engine) -> None:
    passage = {"chunk_id": "tokens#0", "content": "The lifetime of", "truncated": True}
    assert codes(verified(engine, bundle={"selected": [passage]})) == []
    del passage["truncated"]
    assert codes(verified(engine, bundle={"selected": [passage]})) == ["changed_passage"]


def test_a_bundle_of_knowledge_core_is_evidence(engine: Engine) -> None:
    """Its passages have no rank: their places are the numbers."""
    passages = [{"chunk_id": "rumours#0"}, {"chunk_id": "tokens#0", "content": TOKENS}]
    bundle = {"version": "1.0", "role_id": "", "selected": passages, "rejected": []}
    answer = verified(engine, "The lifetime of an access token [2].", bundle=bundle)
    assert [(p.number, p.chunk_id) for p in answer.passages] == [(1, "rumours#0"), (2, "tokens#0")]
    assert codes(answer, "citations") == ["cited"]


@pytest.mark.parametrize(
    "bundle",
    [
        {},
        {"selected": ["tokens#0"]},
        {"selected": [{"chunk_id": "\ud800"}]},
        {"selected": [{"chunk_id": "x"}] * 1001},
        {"selected": [], "role_id": "No Role\n"},
    ],
)
def test_what_is_no_bundle_is_refused(engine: Engine, bundle: Any) -> None:
    with pytest.raises(UsageError, match=r"\[bundle_malformed\]"):
        verified(engine, bundle=bundle)


def test_unknown_and_changed_passages_fail(engine: Engine) -> None:
    answer = verified(engine, chunk_ids=["tokens#0", "gone#7", "tokens#0\x00"])
    assert codes(answer) == ["unknown_passage"] * 2
    assert answer.verdict == "failed"
    changed = {"chunk_id": "tokens#0", "content": "Tokens live for a year."}
    answer = verified(engine, "Tokens live for a year.", bundle={"selected": [changed]})
    assert codes(answer) == ["changed_passage"]
    assert (answer.verdict, answer.passages) == ("failed", [])


def test_a_passage_named_once_as_it_is_and_once_changed_is_no_evidence(engine: Engine) -> None:
    same = {"chunk_id": "tokens#0", "content": TOKENS}
    changed = {"chunk_id": "tokens#0", "content": "Tokens live for a year."}
    for selected in ([same, changed], [changed, same]):
        answer = verified(engine, bundle={"selected": selected})
        assert codes(answer) == ["changed_passage"]
        assert answer.passages == []


def test_what_the_roles_policy_rejects_is_no_evidence(engine: Engine) -> None:
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "vendor", "reason": "no"}]})
    answer = verified(engine, "Tokens never expire [1].", role, chunk_ids=["rumours#0"])
    assert codes(answer) == ["rejected_source"]
    assert codes(answer, "citations") == ["unknown_citation"]
    assert answer.passages == []


def test_a_stale_passage_fails_only_if_the_role_rejects_stale_ones(engine: Engine) -> None:
    draft = "Access tokens lived for an hour in those days [1]."
    answer = verified(engine, draft, chunk_ids=["old#0"])
    assert "stale_source" not in answer.counts
    strict = overlay(retrieval_policy={"freshness_max_age_days": 30, "stale_penalty": 1.0})
    answer = verified(engine, draft, strict, chunk_ids=["old#0"])
    [stale] = [finding for finding in answer.findings if finding.code == "stale_source"]
    assert stale.fails
    assert answer.passages == []


def test_the_role_of_the_bundle_applies(engine: Engine, tmp_path: Path) -> None:
    role = {
        "version": "1.0",
        "role_id": "reviewer",
        "source_policy": {"forbidden_sources": [{"pattern": "vendor", "reason": "no"}]},
    }
    (tmp_path / "reviewer.json").write_text(json.dumps(role), encoding="utf-8")
    bundle = {"role_id": "reviewer", "selected": [{"chunk_id": "rumours#0"}]}
    with Engine(engine.workspace.path, (tmp_path,)) as other_engine:
        assert codes(verified(other_engine, bundle=bundle)) == ["rejected_source"]
        assert codes(verified(other_engine, bundle=bundle | {"role_id": ""})) == []


def test_an_agent_cannot_tell_hidden_from_unknown(governed: Engine) -> None:
    answers = []
    for chunk_id in ("salary#0", "nothing#0"):
        for content in (None, "The salary of Ada is secret.", "something else"):
            passage = {"chunk_id": chunk_id} | ({"content": content} if content else {})
            answer = verified(governed, agent="ada", bundle={"selected": [passage]})
            answers.append(answer.model_dump_json().replace(chunk_id, "ID"))
    assert len(set(answers)) == 1
    assert "unknown_passage" in answers[0]


def test_the_whole_corpus_is_what_the_agent_sees(governed: Engine) -> None:
    answer = verified(governed, 'The note says "The salary of Ada is secret".', agent="ada")
    assert answer.verdict == "failed"
    assert "salary#0" not in {finding.chunk_id for finding in answer.findings}
    answer = verified(governed, "The lifetime of an access token is fifteen minutes.", agent="ada")
    assert {finding.chunk_id for finding in answer.findings} == {"tokens#0"}


def test_what_policy_rejects_takes_no_place_from_what_it_allows(tmp_path: Path) -> None:
    many = [
        document(f"rumour{number:02}", [TOKENS], source_id="vendor", title=TOKENS)
        for number in range(40)
    ]
    db = build(tmp_path, [*many, document("tokens", [f"{TOKENS} And more of other things."])])
    role = overlay(source_policy={"forbidden_sources": [{"pattern": "vendor", "reason": "no"}]})
    with Engine(db) as engine:
        answer = verified(engine, TOKENS, role)
    assert {finding.chunk_id for finding in answer.findings} == {"tokens#0"}


# -- A citation must name a passage of the evidence, its lines, and something that it says ---------

AUDIT = "Access tokens live for fifteen minutes.\nThey are signed by the gateway.\nKeys rotate."
BACKUPS = "Backups of the warehouse are kept in Lisbon for thirty days."
GERMAN = "Die Sicherungen des Lagers werden dreißig Tage lang in Lissabon aufbewahrt."


@pytest.fixture(scope="module")
def engine_citations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    audit = replace(
        document("audit", []), chunks=(chunk("audit#0", AUDIT, start_line=5, end_line=7),)
    )
    manual = replace(
        document("manual", [], title="Manual"),
        chunks=(
            chunk("manual#0", "Wear a helmet in the yard at night.", page=3),
            chunk("manual#1", "Gates close at eight each evening.", page=4),
        ),
    )
    documents = [audit, manual, document("backups", [BACKUPS]), document("german", [GERMAN])]
    with Engine(build(tmp_path_factory.mktemp("citations"), documents)) as opened:
        yield opened


IDS = ["audit#0", "backups#0", "manual#0", "manual#1", "german#0"]


def verified_citations(
    engine: Engine, draft: str, *, whole_corpus: bool = False, **fields: object
) -> Verification:
    values = {"draft": draft, "now": NOW} | ({} if whole_corpus else {"chunk_ids": IDS}) | fields
    return engine.verify(VerifyRequest.model_validate(values))


def citations(answer: Verification) -> list[Finding]:
    return [finding for finding in answer.findings if finding.check == "citations"]


TRUE = [
    "Access tokens live for fifteen minutes [1].",
    "Access tokens live for fifteen minutes (audit.md:5-7).",
    "Access tokens live for fifteen minutes (audit.md:5-5).",
    "Access tokens live for fifteen minutes (audit#0).",
]


@pytest.mark.parametrize("draft", TRUE)
def test_true_citations(engine_citations: Engine, draft: str) -> None:
    [finding] = citations(verified_citations(engine_citations, draft))
    assert (finding.code, finding.fails, finding.remedy) == ("cited", False, None)


@pytest.mark.parametrize("whole_corpus", [False, True])
@pytest.mark.parametrize(
    ("citation", "code", "verdict"),
    [
        ("[9]", "unknown_citation", "failed"),
        ("(nothing.md:5-7)", "unknown_citation", "failed"),
        ("(audit.md:50-70)", "unknown_citation", "failed"),
        ("(audit.md:5-8)", "unknown_citation", "failed"),
        ("(audit.md:1-999999999)", "unknown_citation", "failed"),
        ("(backups.md:1-1)", "wrong_place", "check"),
    ],
)
def test_false_citations_name_the_true_place(
    engine_citations: Engine, citation: str, code: str, verdict: str, whole_corpus: bool
) -> None:
    draft = f"Access tokens live for fifteen minutes {citation}."
    answer = verified_citations(engine_citations, draft, whole_corpus=whole_corpus)
    [finding] = citations(answer)
    assert (finding.code, finding.verdict, finding.locator) == (code, verdict, "audit.md:5-7")
    assert draft[finding.span.start : finding.span.end] in citation
    assert answer.verdict == verdict


def test_a_citation_of_other_lines_of_its_passage_is_wrong(engine_citations: Engine) -> None:
    draft = "Access tokens live for fifteen minutes (audit.md:7-7)."
    [finding] = citations(verified_citations(engine_citations, draft))
    assert (finding.code, finding.locator) == ("wrong_place", "audit.md:5-5")


@pytest.mark.parametrize("draft", ["for 20 minutes", "never for fifteen minutes"])
def test_a_place_with_another_figure_or_sense_is_not_proposed(
    engine_citations: Engine, draft: str
) -> None:
    draft = f"Access tokens live {draft} (backups.md:1-1)."
    [finding] = citations(verified_citations(engine_citations, draft))
    assert (finding.code, finding.locator) == ("wrong_place", None)


ROTA = """day,shift,guard,first aider
2026-11-08,morning,Joan Pratt,Hanna Cole
2026-11-14,evening,Doris Fenwick,Alan Tring
2026-11-15,morning,Samir Haddad,Ted Bowyer
"""
FOOD = """product,milk,egg,nuts,soya
Butter rolls,yes,yes,no,no
Oat bars,no,no,no,yes
Nut bread,no,no,**yes**,may contain
"""


@pytest.mark.parametrize(
    ("draft", "code", "place"),
    [
        ("On 14 November Alan Tring is first aider (rota.csv:3).", "cited", "1-4"),
        ("Doris Fenwick is guard, Alan Tring first aider (rota.csv:2).", "wrong_place", "3-3"),
        ("The evening guard is Joan Pratt (rota.csv:3).", "differs", "1-4"),
        ("Alan Tring has the evening with Joan Pratt (rota.csv).", "differs", "1-4"),
        ("The butter rolls have milk, but no nuts (food.csv).", "cited", "1-4"),
        ("The butter rolls contain no egg (food.csv).", "differs", "1-4"),
        ("The nut bread is egg-free; it contains soya (food.csv).", "differs", "1-4"),
        ("The nut bread has no nuts (food.csv).", "differs", "1-4"),
        ("The butter rolls contain not only milk (food.csv).", "cited", "1-4"),
    ],
)
def test_a_row_is_read_with_its_header_and_not_with_other_rows(
    tmp_path: Path, draft: str, code: str, place: str
) -> None:
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest(
            [write_files(tmp_path / "f", {"rota.csv": ROTA, "food.csv": FOOD})],
            IngestOptions(lexical_only=True),
        )
    with Engine(workspace) as engine:
        answer = engine.verify(VerifyRequest(draft=draft))
    found = {str(f.code): f for f in answer.findings}
    assert answer.verdict == ("clean" if code == "cited" else "check")
    assert (found[code].locator or "").endswith(f".csv:{place}")


@pytest.mark.parametrize(
    ("draft", "verdict"),
    [
        ("Ruth Oakley has plot B2 (list v1.csv:2).", "clean"),  # "No" is the name of a column.
        ("Ian Dean has plot E6 (list v1.csv:3).", "check"),  # The newer list has another row.
    ],
)
def test_a_row_that_a_newer_version_repeats_is_no_fault(
    tmp_path: Path, draft: str, verdict: str
) -> None:
    rows = "no,name,plot\n103,Ruth Oakley,B2\n104,Ian Dean,{}\n"
    files = {"list v1.csv": rows.format("E6"), "list v2.csv": rows.format("E7")}
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([write_files(tmp_path / "f", files)], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        assert engine.verify(VerifyRequest(draft=draft)).verdict == verdict


ROWS = """| Card | Working days |
|---|---|
| Red | 5 |
| Blue | 2 |
Ana Ruiz asked for `--red`.
Bob Lind asked for `--blue`.
Carter Brothers bring both."""


@pytest.mark.parametrize(
    ("draft", "code"),
    [
        ("Blue takes two working days (rows.md:4-4).", "figure_found"),
        ("Blue takes five working days (rows.md:4-4).", "unsupported_figure"),
        ("Bob Lind asked for it (rows.md:5-5).", "unknown_name"),
        ("Someone asked for `--blue` (rows.md:5-5).", "unknown_name"),
        ("Both are brought by Lind Brothers (rows.md:7-7).", "unknown_name"),
    ],
)
def test_a_citation_of_lines_means_these_lines(tmp_path: Path, draft: str, code: str) -> None:
    rows = replace(document("rows", []), chunks=(chunk("rows#0", ROWS, start_line=1, end_line=7),))
    with Engine(build(tmp_path, [rows])) as engine:
        answer = engine.verify(VerifyRequest(draft=draft, chunk_ids=["rows#0"], now=NOW))
    assert code in answer.counts


def test_the_date_of_a_file_is_not_in_place_of_one_in_its_text(tmp_path: Path) -> None:
    text = "our 10 December bus is in the workshop. We can drive on Thursday,\n17 December 2026 instead."
    bus = document(
        "2026-11-20 Trip bus", [], title="Bus on 10 December", updated_at="2026-11-20T10:00:00Z"
    )
    bus = replace(bus, chunks=(chunk("bus#0", text, start_line=1, end_line=2),))
    draft = "The bus trip of 10 December is moved to Thursday, 17 December 2026 ({}:1-2)."
    with Engine(build(tmp_path, [bus])) as engine:
        request = VerifyRequest(draft=draft.format("2026-11-20 Trip bus.md"), now=NOW)
        assert engine.verify(request).verdict == "clean"


CONCERT = "the winter concert will take place on Saturday, 12 December 2026, at 17:00"
HEADERS = (
    "From: Bo <bo@example.org>\nTo: all-teachers@music-school.example.org\nSubject: Winter concert 2026\n"
    "Date: Mon, 14 Sep 2026 10:00:00 +0000\n"
)
QUOTED = f"{CONCERT[:50]}=\n{CONCERT[50:]}"


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("plan.eml", f"{HEADERS}\nDear all,\n\n{CONCERT}\n", "8-8"),
        ("plan.eml", f"{HEADERS}Content-Transfer-Encoding: quoted-printable\n\n{QUOTED}\n", "7-8"),
        (
            "plan.md",
            f"# From the office to all teachers and parents, 2026-09-14\n\nDear all,\n\n{CONCERT}\n",
            "5-5",
        ),
    ],
)
def test_cited_lines_may_begin_in_small_letters(
    tmp_path: Path, name: str, text: str, lines: str
) -> None:
    """The date that is shown with the passage is not in their sentence."""
    path = f"2026-09-14 winter concert {name}"
    write_files(tmp_path / "mails", {path: text})
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([tmp_path / "mails"], IngestOptions(lexical_only=True))
    draft = f'Our winter concert takes place on Saturday, 12 December 2026, at 17:00 ("{path}:{lines}").'
    with Engine(workspace) as engine:
        answer = engine.verify(VerifyRequest(draft=draft))
    assert answer.verdict == "clean"


def test_a_citation_may_have_a_date_in_another_form(tmp_path: Path) -> None:
    texts = {
        "agenda": "Visita de obra nº 4, 2026-12-10 09:30",
        "acta": "La próxima visita de obra nº 4 es el 10 de diciembre de 2026.",
    }
    documents = [document(name, [text]) for name, text in texts.items()]
    draft = "La próxima visita de obra nº 4 es el 10 de diciembre de 2026 (agenda.md:1-1)."
    with Engine(build(tmp_path, documents)) as engine:
        assert engine.verify(VerifyRequest(draft=draft, now=NOW)).verdict == "clean"


def test_a_cited_sentence_is_checked_in_other_words_than_those_of_its_passage(
    engine_citations: Engine,
) -> None:
    draft = "Snapshots live 30 days (backups.md:1-1)."
    answer = verified_citations(engine_citations, draft, whole_corpus=True)
    assert answer.verdict == "clean" and answer.message.startswith("1 citation, 1 figure; ")


@pytest.mark.parametrize(
    ("between", "verdict"), [(" ", "check"), ("\n\n", "clean"), ("\n- ", "clean")]
)
def test_a_citation_does_not_reach_beyond_its_paragraph(
    engine_citations: Engine, between: str, verdict: str
) -> None:
    draft = f"Backups are kept in Lisbon (backups.md:1-1).{between}Access tokens live 15 minutes."
    assert verified_citations(engine_citations, draft, whole_corpus=True).verdict == verdict


def test_a_figure_counts_as_a_word_of_its_sentence(engine_citations: Engine) -> None:
    draft = "Lisbon snapshots: 30 days."
    assert verified_citations(engine_citations, draft, whole_corpus=True).verdict == "clean"


def test_a_citation_of_something_else_is_unrelated(engine_citations: Engine) -> None:
    [finding] = citations(
        verified_citations(
            engine_citations, "Elephants in the zoo drink plenty of cold fresh water daily [2]."
        )
    )
    assert (finding.code, finding.fails) == ("unrelated_citation", True)


def test_words_elsewhere_say_nothing_of_a_citation_in_another_language(tmp_path: Path) -> None:
    offer = "Pour la pose il nous faut un échafaudage côté rue, et une place pour notre camion."
    estimate = "The scaffold on the street side is needed for the fitting of the windows."
    documents = [document("offer", [offer]), document("estimate", [estimate])]
    draft = (
        "For the fitting of the windows he needs the scaffold on the street side (offer.md:1-1)."
    )
    with Engine(build(tmp_path, documents)) as engine:
        found = citations(engine.verify(VerifyRequest(draft=draft, now=NOW)))
    assert [f.code for f in found] == ["unchecked_language"]


def test_another_language_is_a_remark(engine_citations: Engine) -> None:
    draft = (
        "Les sauvegardes de cet entrepôt central sont conservées pour un mois entier dans la ville "
        "voisine [2]."
    )
    answer = verified_citations(engine_citations, draft)
    assert [(f.code, f.verdict) for f in citations(answer)] == [("unchecked_language", "check")]
    assert answer.verdict == "check"


@pytest.mark.parametrize(("require", "count"), [(None, 0), (["coverage"], 1)])
def test_of_a_sentence_in_another_language_nothing_is_said(
    tmp_path: Path, require: Any, count: int
) -> None:
    guide = document("guide", ["Die Werkstatt schließt an jedem Freitag im Mai um vier Uhr."])
    request = VerifyRequest(
        draft="The workshop is shut early on Fridays.", chunk_ids=["guide#0"], require=require
    )
    with Engine(build(tmp_path, [guide])) as engine:
        assert engine.verify(request).counts.get("uncovered", 0) == count


@pytest.mark.parametrize("citation", ["⁹", " [Smith 2021]", " (source 9)", " [^9]"])
def test_other_forms_of_citations_are_unknown(engine_citations: Engine, citation: str) -> None:
    answer = verified_citations(
        engine_citations, f"Access tokens live for fifteen minutes.{citation}"
    )
    assert [finding.code for finding in citations(answer)] == ["unknown_citation"]
    assert answer.verdict == "failed"


def test_a_title_beside_a_quote_is_its_citation(engine_citations: Engine) -> None:
    quote = '"Wear a helmet in the yard at night" (Manual).'
    answer = verified_citations(engine_citations, quote)
    assert answer.counts["exact"] == 1
    answer = verified_citations(
        engine_citations, '"Backups of the warehouse are kept in Lisbon for thirty days" (Manual).'
    )
    assert answer.counts["misattributed"] == 1


# -- Sources are doubted by the rules of retrieval -------------------------------------------------

TEXT = "The lifetime of an access token is fifteen minutes."
LABELS: dict[str, dict[str, Any]] = {
    "plain": {"sensitivity": "public"},
    "aged": {"updated_at": "2020-01-01T00:00:00Z", "sensitivity": "public"},
    "web": {"origin": "untrusted", "sensitivity": "public"},
    "forum": {"trust_tier": "untrusted", "sensitivity": "public"},
    "replaced": {"sensitivity": "public"},
    "newer": {"sensitivity": "public", "supersedes": ("replaced",)},
    "later": {
        "sensitivity": "public",
        "supersedes": ("plain",),
        "valid_from": "2030-01-01T00:00:00Z",
    },
}


@pytest.fixture(scope="module")
def engine_sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    documents = [
        *(document(name, [f"{TEXT} Says {name}."], **labels) for name, labels in LABELS.items()),
        document("flagged", [f"{TEXT} Says flagged."], FLAGGED, sensitivity="public"),
    ]
    with Engine(build(tmp_path_factory.mktemp("sources"), documents)) as opened:
        yield opened


def verified_sources(
    engine: Engine, name: str, draft: str = f"{TEXT[:-1]} [1].", **fields: Any
) -> Verification:
    request = VerifyRequest(draft=draft, chunk_ids=[f"{name}#0"], now=NOW, **fields)
    return engine.verify(request)


def doubts(answer: Verification, check: str = "sources") -> list[tuple[str, bool]]:
    return [(f.code, f.fails) for f in answer.findings if f.check == check]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", []),
        ("aged", []),
        ("web", [("untrusted_source", False)]),
        ("forum", [("untrusted_source", False)]),
        ("replaced", [("superseded_source", True)]),
        ("flagged", [("flagged_source", False)]),
    ],
)
def test_doubts(engine_sources: Engine, name: str, expected: list[tuple[str, bool]]) -> None:
    answer = verified_sources(engine_sources, name)
    assert doubts(answer) == expected
    assert answer.verdict == ("failed" if ("superseded_source", True) in expected else "clean")


FIRST_MAIL = """From: Bo <bo@example.org>
To: Ana <ana@example.org>
Subject: windows
Date: Mon, 2 Feb 2026 09:00:00 +0000

The windows cost EUR 48,600 and take 11 weeks. The van comes at 8 am, the rails at 6 am.
"""
MAIL = """From: Ana <ana@example.org>
To: Bo <bo@example.org>
Subject: Re: windows
Date: Tue, 3 Mar 2026 10:00:00 +0000

Dear Bo, the windows now cost EUR 51,900 and take 14 weeks. The rails at 6 am are fine.

On Mon, 2 Feb 2026 at 09:00, Bo wrote:
> The windows cost EUR 48,600 and take 11 weeks. The van comes at 8 am, the rails at 6 am.
"""


OFFER = FIRST_MAIL.replace("windows", "hall").replace(
    "48,600 and take 11 weeks", "1,390 from 7 pm on 4 May 2026"
)
LATER = """From: Bo <bo@example.org>
Subject: hall
Date: Tue, 3 Mar 2026 10:00:00 +0000

The hall costs 1,120 euros instead of 1,390 euros. Keys come from 5 pm on, and the hall is ours on 11 May 2026. The
drums cost 60 euros instead of 80 euros. The choir costs 90 euros.

> The hall is free on 4 May 2026.
"""


@pytest.fixture(scope="module")
def mails(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("mails")
    texts = {"a.eml": FIRST_MAIL, "b.eml": MAIL, "c.eml": OFFER, "d.eml": LATER}
    workspace = Workspace(folder / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([write_files(folder / "mails", texts)], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        yield engine


WINDOWS, HALL = "the mail that quotes it has EUR 51,900", "hall costs 1,120 euros instead of 1,390"


@pytest.mark.parametrize(
    ("draft", "note"),
    [
        ("The windows cost EUR 48,600 (a.eml:6-6).", WINDOWS),
        (
            "The windows cost EUR 48,600 (a.eml:6-6), and EUR 51,900 by the next mail (b.eml:6-6).",
            None,
        ),
        ("The windows cost EUR 51,900 (b.eml:6-6).", None),
        ("The van comes at 8 am (a.eml:6-6).", None),
        ("The hall costs EUR 1,390 (c.eml:6-6).", HALL),
        (
            "The hall costs 1,390 euros (d.eml:5-6).",
            f'text says that it no longer holds: "The {HALL}',
        ),
        ("The hall costs 1,390 euros.", HALL),
        ("The hall was to cost EUR 1,390 (c.eml:6-6).", None),
        ("The hall costs 1,120 euros, down from 1,390 euros (d.eml:5-6).", None),
        ("The hall costs 1,120 euros (d.eml:5-6).", None),
        ("Der Saal kostet für den Abend 1390 € (c.eml:6-6).", HALL),
        ("The hall is open from 7 pm (c.eml:6-6).", None),
        ("The hall is free on 4 May 2026 (c.eml:6-6).", "a later mail about it has 11 May 2026"),
        ("The show begins on 4 May 2026 (c.eml:6-6).", None),
        ("The choir costs 90 euros (d.eml:5-6).", None),
    ],
)
def test_a_figure_that_a_later_mail_changes(mails: Engine, draft: str, note: str | None) -> None:
    answer = mails.verify(VerifyRequest(draft=draft))
    notes = [f.note or "" for f in answer.findings if f.code == "old_source"]
    assert len(notes) == bool(note)
    assert not note or note in notes[0]
    assert answer.verdict == ("check" if note else "clean")


QUOTE = f"{HEADERS}\n  Charlotte   25 kg sack   31.50 pounds\n\nDelivery from 8 February 2027.\n"
CORRECTION = (
    f"{HEADERS.replace('14 Sep', '24 Sep')}\nThe Charlotte sack of 25 kg is now 36.20 pounds instead of"
    " 31.50.\n\nDelivery will be from 22 February 2027, not from the 8th.\n"
)


@pytest.mark.parametrize("cited", ["", " (a.eml:6-8)"])
@pytest.mark.parametrize(
    "sentence",
    ["The Charlotte sack of 25 kg costs 31.50 pounds{}.", "Delivery is from 8 February 2027{}."],
)
def test_a_correction_is_found_with_and_without_citation(
    tmp_path: Path, sentence: str, cited: str
) -> None:
    write_files(tmp_path / "mails", {"a.eml": QUOTE, "b.eml": CORRECTION})
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([tmp_path / "mails"], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        answer = engine.verify(VerifyRequest(draft=sentence.format(cited)))
    assert answer.counts.get("old_source") == 1


TRIP = f"""{FIRST_MAIL.partition("Subject")[0]}Subject: Zoo trip
Date: Mon, 2 Feb 2026 09:00:00 +0000

We go to the zoo on Thursday 22 April 2027. Lessons are from 10:00 to 11:30. The bus leaves at 9:35.

The trip costs 14 euros per child. Pocket money is not allowed. Bring goggles. Bo Lind runs the trip.
Please send the forms by 5 March 2027. A note is needed for each child.
Mr Ole Kern waits at the gate. The bags for the zoo are of Dacron.
"""
CHANGE = f"""{FIRST_MAIL.partition("Subject")[0]}Subject: Re: Zoo trip
Date: Tue, 3 Mar 2026 10:00:00 +0000

We now go on Tuesday 4 May 2027, but the bus leaves at 9:20. The price per child falls
to 11 euros. Children may now bring up to 3 euros of pocket money. Goggles are forbidden.

Eva Holm takes over the trip. The forms are still due on the same day. The rule about the note does
not change. At the gate there is now Ms Petra Lund, at the same time. We had rain and the Dacron is spoiled.
"""


@pytest.mark.parametrize(
    ("sentence", "note"),
    [
        ("The zoo trip is on Thursday 22 April 2027", "a later mail about it has 4 May 2027"),
        ("The bus to the zoo leaves at 9:35", "a later mail about it has 9:20"),
        ("The zoo trip costs 14 euros", "a later mail about it has 11 euros"),
        ("Pocket money is not allowed on the trip", "pocket money"),
        ("Goggles are packed for the zoo", "Goggles are forbidden"),
        ("Bo Lind runs the trip to the zoo", "Eva Holm takes over the trip."),
        ("The forms for the zoo go to Bo by 5 March 2027", None),
        ("Lessons are from 10:00 to 11:30", None),
        ("A note is needed for each child", None),
        ("Ole Kern waits at the gate of the zoo", "At the gate there is now Ms Petra Lund"),
        ("The bags for the zoo are of Dacron", "the Dacron is spoiled"),
    ],
)
def test_what_a_reply_in_another_file_changes(
    tmp_path: Path, sentence: str, note: str | None
) -> None:
    write_files(tmp_path / "mails", {"a.eml": TRIP, "b.eml": CHANGE})
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([tmp_path / "mails"], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        answer = engine.verify(VerifyRequest(draft=f"{sentence} (a.eml:6-10)."))
    notes = [f.note or "" for f in answer.findings if f.code == "old_source"]
    assert (note in notes[0] if notes and note else notes == []) and bool(notes) == bool(note)


def verified_files(tmp_path: Path, texts: Mapping[str, str], draft: str) -> Verification:
    """A draft checked against files."""
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([write_files(tmp_path / "files", texts)], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        return engine.verify(VerifyRequest(draft=draft))


MINUTES = {
    "2026-03-12 minutes.md": "# Bonfires\n\nBonfires are allowed from dusk on.\n\n"
    "# Tools\n\nThe mower costs 300 euros. Ana has the keys of the shed.\n\n"
    "# Walk on the route\n\nThe walk on route South is at 7:30. Ms Lund is in charge of it. It is cleaned by Tom and Lena.\n\n"
    "# Choir\n\nThe choir is held in the kitchen.\n\n"
    "# Badges\n\nThe spare key lies with Ana Ruiz. Each guest pays a pledge at the desk.\n"
    "The chair may lend a badge to a guest. The safety round is at noon.\n\n"
    "# Open fair\n\nAdmission to the open fair is free. Karim Bou guides each visitor on site.\n",
    "2026-06-11 minutes.md": "# Bonfires\n\nBonfires are no longer allowed.\n\n"
    "# Tools\n\nThe mower of 300 euros was bought. Bo has the keys of the shed.\n\n"
    "# Walk on the route\n\nEva leads the walk on the route from now on. Ms Holm is ill.\n"
    "Order of the signs changed: Ann, Tom, Lena. A phone goes to a parent, no longer to the child.\n",
    "2026-07-02 minutes.md": "# Party\n\nThe party is not held in the kitchen.\n\n"
    "# Badges\n\nThe spare key goes to Tom Berg. A guest pays a pledge at the desk.\n"
    "The chair lends no badge to a guest any more. The safety round is dropped.\n\n"
    "# Open fair\n\nThe open fair is moved to May. Admission stays free.\nAs Karim Bou is busy, each visitor "
    "on site is guided by Estelle Drou.\n",
    "note.md": "Date: 2026-07-01\n\nBo has the keys of the shed.\n"
    "The gutters of the shed will be zinc, not copper.\n",
    "offer.md": "Date: 2026-05-01\n\nThe gutters of the shed are made of copper. It has two doors.\n",
}


@pytest.mark.parametrize(
    ("draft", "is_old"),
    [
        ("Bonfires are allowed from dusk on (2026-03-12 minutes.md:3).", True),
        ("Bonfires were allowed from dusk on (2026-03-12 minutes.md:3).", False),
        ("Bonfires are no longer allowed (2026-06-11 minutes.md:3).", False),
        ("The mower costs 300 euros (2026-03-12 minutes.md:7).", False),
        ("Bo has the keys of the shed (2026-06-11 minutes.md:7).", False),
        ("The gutters of the shed are copper (offer.md:3).", True),
        ("The shed has two doors (offer.md:3).", False),
        ("The walk on route South is at 7:30 (2026-03-12 minutes.md:11).", False),
        ("Ms Lund is in charge of the walk (2026-03-12 minutes.md:11).", False),
        ("It is cleaned by Tom and Lena (2026-03-12 minutes.md:11).", False),
        ("The gutters of the shed are zinc (note.md:4).", False),
        ("The choir is held in the kitchen (2026-03-12 minutes.md:15).", False),
        ("The spare key is with Ana Ruiz (2026-03-12 minutes.md:19).", True),
        ("Guests pay a pledge at the desk (2026-03-12 minutes.md:19).", False),
        ("A guest may get a badge from the chair (2026-03-12 minutes.md:20).", True),
        ("There is a safety round at noon (2026-03-12 minutes.md:20).", True),
        ("Nobody pays admission to the open fair (2026-03-12 minutes.md:24).", False),
        ("Karim Bou guides each visitor on site (2026-03-12 minutes.md:24).", True),
    ],
)
def test_what_later_minutes_change(tmp_path: Path, draft: str, is_old: bool) -> None:
    answer = verified_files(tmp_path, MINUTES, draft)
    assert ("old_source" in answer.counts) == is_old
    assert answer.verdict == ("check" if is_old else "clean")


FLOOR = "Date: 2026-03-01\n\nThe wards get a floor of sheet rubber. Boxes stand in the back row of the wards.\n"
LATER_TEXT = "Date: 2026-05-01\n\n{}\n"
MAIL_OF_OTHERS = "From: x@y.example\nDate: Fri, 1 May 2026 10:00:00 +0000\n{}\n\n{}\n"


@pytest.mark.parametrize(
    ("draft", "name", "text", "is_old"),
    [
        (
            "The wards get a floor of sheet rubber",
            "b.md",
            "The wards get vinyl instead of rubber.",
            True,
        ),
        (
            "The wards get a floor of sheet rubber",
            "b draft.md",
            "The wards get vinyl instead of rubber.",
            False,
        ),
        (
            "The wards get a floor of sheet rubber",
            "b.md",
            "We would lay vinyl in the wards instead of rubber.",
            False,
        ),
        (
            "Boxes stand in the back row of the wards",
            "b.md",
            "Backing tracks are not allowed in the wards.",
            False,
        ),
    ],
)
def test_what_a_later_text_changes(
    tmp_path: Path, draft: str, name: str, text: str, is_old: bool
) -> None:
    files = {"a.md": FLOOR, name: LATER_TEXT.format(text)}
    answer = verified_files(tmp_path, files, f"{draft} (a.md:3).")
    assert ("old_source" in answer.counts) == is_old


@pytest.mark.parametrize("is_advert", [True, False])
def test_an_advert_changes_nothing(tmp_path: Path, is_advert: bool) -> None:
    header = "List-Unsubscribe: <https://y.example/u>" if is_advert else "Subject: floor"
    mail = MAIL_OF_OTHERS.format(header, "The wards get vinyl instead of rubber.")
    draft = "The wards get a floor of sheet rubber (a.md:3)."
    answer = verified_files(tmp_path, {"a.md": FLOOR, "b.eml": mail}, draft)
    assert ("old_source" in answer.counts) != is_advert


ROOMS = "# Days\n\n| Day | Why | Group |\n|---|---|---|\n| 7 May | Bridge day | Care for ten children |\n"
ROOMS += "| 28 May | Corpus Christi | |\n"


@pytest.mark.parametrize(
    ("draft", "differs"),
    [
        ("After Corpus Christi, on 28 May, there is care for ten children (days.md:3-6).", True),
        ("On the bridge day, 7 May, there is care for ten children (days.md:3-6).", False),
    ],
)
def test_a_cell_of_another_row_is_to_be_checked(tmp_path: Path, draft: str, differs: bool) -> None:
    answer = verified_files(tmp_path, {"days.md": ROOMS}, draft)
    assert ("differs" in answer.counts) == differs


def test_what_has_the_figures_of_a_sentence_may_have_its_words_in_the_title(tmp_path: Path) -> None:
    text = "# Ruth Abel's contract as director of music\n\nParties: the choir and Ruth Abel.\n\n"
    text += "1. She leads it from 1 July 2025 to 30 June 2028.\n"
    draft = "Ruth Abel's contract as director of music ends on 30 June 2028 (a.md:5)."
    assert "wrong_place" not in verified_files(tmp_path, {"a.md": text}, draft).counts


def test_a_later_edition_may_repeat_what_is_not_so(tmp_path: Path) -> None:
    rules = {
        "rules 2024.md": "# Rules of the apiary\n\nDogs are not admitted to the apiary.\n",
        "rules 2026.md": "# Rules of the apiary\n\nDogs are not admitted.\n",
    }
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([write_files(tmp_path / "rules", rules)], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        request = VerifyRequest(draft="Dogs are not admitted to the apiary (rules 2024.md:3-3).")
        notes = [f.note or "" for f in engine.verify(request).findings if f.code == "old_source"]
    assert not any("is later" in note for note in notes)


TROUPE = {
    "plan.csv": "date;lieu;acte\n2026-12-15;Foyer rural;Acte III\n2027-01-26;Mairie;Denis Pralon dirige l'acte V\n",
    "tarifs.md": "# Billets\n\n- Plein tarif : 12 €\n- Tarif de groupe : 9 €\n",
    "devis.md": "# Devis\n\n- Le technicien est Gaël Pinget.\n- Un projecteur cassé est facturé 120 €.\n",
    "PV_2026-09-10.md": "# Comité\n\n## Recette du dimanche\nLa recette du dimanche est versée à l'hôpital.\n",
    "PV_2026-11-19.md": "# Comité\n\n## Prix\nNous décidons de porter le plein tarif à 14 €.\n\n## Recette du dimanche\n"
    "La décision du 10 septembre est annulée : la recette du dimanche ira à la rénovation.\n",
    "note 2026-11-20.md": "Le 15 décembre nous ne sommes pas au Foyer rural mais à l'école.\n"
    "Le 26 janvier, c'est Karim Belaïd qui dirige l'acte V à la place de Denis.\n"
    "Bonjour Claire,\nGaël Pinget ne sera pas disponible.\n",
}


@pytest.mark.parametrize(
    ("draft", "is_old"),
    [
        ("La répétition du 15 décembre a lieu au Foyer rural (plan.csv:2).", True),
        ("Le 26 janvier, Denis Pralon dirige l'acte V à la mairie (plan.csv:3).", True),
        ("Le plein tarif est de 12 € (tarifs.md:3).", True),
        ("Le tarif de groupe est de 9 € (tarifs.md:4).", False),
        ("Le technicien est Gaël Pinget (devis.md:3).", True),
        ("Un projecteur cassé est facturé 120 € (devis.md:4).", False),
        ("La recette du dimanche va à l'hôpital (PV_2026-09-10.md:4).", True),
    ],
)
def test_later_texts_in_french_change_undated_ones(
    tmp_path: Path, draft: str, is_old: bool
) -> None:
    assert ("old_source" in verified_files(tmp_path, TROUPE, draft).counts) == is_old


@pytest.mark.parametrize(
    ("old", "new", "draft"),
    [
        (
            "Der Vorstand vermietet die Halle an die Schule.",
            "Der Beschluss ist vom Tisch, auch für die Schule.",
            "Die Halle wird an die Schule vermietet",
        ),
        (
            "De raad sluit de kantine.",
            "Het sluiten van de kantine gaat van tafel.",
            "De kantine wordt gesloten",
        ),
        (
            "L'association vend sa camionnette avant l'été.",
            "Camionnette : on revient sur ce vote.",
            "La camionnette est vendue avant l'été",
        ),
        (
            "El consejo vende la furgoneta.",
            "Queda sin efecto la venta de la furgoneta.",
            "La furgoneta se vende",
        ),
        (
            "Il consiglio vende il gommone.",
            "La vendita del gommone è revocata.",
            "Il gommone si vende",
        ),
        ("The board sells the van.", "The vote on the van is reversed.", "The van is to be sold"),
    ],
)
def test_later_minutes_take_back_a_decision(tmp_path: Path, old: str, new: str, draft: str) -> None:
    texts = {"board 2026-03-10.md": f"{old}\n", "board 2026-05-10.md": f"{new}\n"}
    answer = verified_files(tmp_path, texts, f"{draft} (board 2026-03-10.md:1).")
    assert "old_source" in answer.counts


@pytest.mark.parametrize(
    "away",
    [
        "Marc Lund is in hospital.", "Marc Lund ist drei Wochen auf Lehrgang.", "Marc Lund sera en congé.",
        "Marc Lund está de viaje.", "Marc Lund è in ferie.", "Marc Lund is afwezig.",
    ],
)  # fmt: skip
def test_who_is_away_does_nothing(tmp_path: Path, away: str) -> None:
    texts = {"plan.csv": "day;guide\nMonday;Marc Lund\n", "note 2026-05-10.md": f"{away}\n"}
    answer = verified_files(tmp_path, texts, "The guide is Marc Lund (plan.csv:2).")
    assert "old_source" in answer.counts


CONTRACT = {
    "bail.md": "# Contrat de location\n\nFait le 2 septembre 2026\n\n## Article 2 – Loyer\nUne caution de 600 € est "
    "déposée à la remise des clés.\n\n## Article 5 – Buvette\nLa vente d'alcool est interdite dans le hall.\n",
    "avenant.md": "# Avenant n° 1 au contrat de location du 2 septembre 2026\n\nFait le 9 novembre 2026\n\n"
    "## 1. Remise des clés (article 3)\nLes clés sont remises par Mme Besson.\n\n"
    "## 2. Buvette (article 5)\nLa vente de vin est autorisée dans le hall.\n",
}


@pytest.mark.parametrize(
    ("draft", "is_old"),
    [
        ("On ne peut vendre d'alcool ni à table ni dans le hall (bail.md:9).", True),
        ("La caution de 600 € est due à la remise des clés (bail.md:6).", False),
    ],
)
def test_the_heading_of_an_addendum_names_the_clause(
    tmp_path: Path, draft: str, is_old: bool
) -> None:
    assert ("old_source" in verified_files(tmp_path, CONTRACT, draft).counts) == is_old


CREW = {
    "crew.md": "Le samedi, Yves Mermoz tient la buvette.\nUne captation est permise, si tous les comédiens ont signé.\n"
    "Repairs up to 150 euros may be made without asking the owner.\nTravaux : le parking de l'école est fermé.\n"
    "We can only come to the roof on 5 October 2026.\n",
}


@pytest.mark.parametrize(
    ("draft", "differs"),
    [
        ("Yves Mermoz tient la buvette le vendredi (crew.md:1).", True),
        ("Yves Mermoz tient la buvette le samedi (crew.md:1).", False),
        ("La captation est permise si au moins un comédien a signé (crew.md:2).", True),
        ("Repairs up to 150 euros may be made only after asking the owner (crew.md:3).", True),
        ("Le parking de l'école est fermé à cause de travaux (crew.md:4).", False),
        ("We cannot come to the roof before 5 October 2026 (crew.md:5).", False),
    ],
)
def test_days_of_the_week_and_conditions_differ(tmp_path: Path, draft: str, differs: bool) -> None:
    assert ("differs" in verified_files(tmp_path, CREW, draft).counts) == differs


def test_the_number_of_a_thing_is_not_in_place_of_a_figure(tmp_path: Path) -> None:
    text = "## 2. Board\n\nElected for two years: Ann Weber (flat 2), Marc Thill (flat 8) and\nSofia Almeida (flat 15).\n"
    draft = "Ann Weber, Marc Thill and Sofia Almeida are elected for two years (board.md:3-4)."
    assert verified_files(tmp_path, {"board.md": text}, draft).verdict == "clean"


NOTES = {
    "notes.md": "# Phone notes\n\n4 Aug  Mr Dunning: the water meter is read on 24 August at 16:00.\n"
    "8 Aug  Hotel: 40 rolls at 6:30. Nadia has the keys of the mill.\n"
    "21 Aug  The reading of the meter is put off to 7 September.\n"
    "26 Aug  Hotel: 60 rolls at 6:45. From tomorrow Hugo has the keys of the mill.\n"
    "27 Aug  First viewing of the film moved to 4 December.\n",
    "list.csv": "Name,Task\nNadia,keys of the mill\n",
    "calls.md": "26.11.2026 Die Wartung macht Frau Lind am 14.12. um 13 Uhr.\n"
    "27.11.2026 Frau Loh hat einen Termin am 9.12. um 10 Uhr.\n",
    "days.md": "# Days\n\nThe first viewing of the film is on 27 November. The cook is Ann.\n",
    "diary.csv": "Day,Meter\n2026-08-04,The meter is at 100 kWh\n2026-08-09,The meter is at 200 kWh\n",
}


@pytest.mark.parametrize(
    ("draft", "note"),
    [
        ("The water meter is read on 24 August (notes.md:3).", "notes.md has 7 September"),
        ("The water meter is read at 16:00 (notes.md:3).", None),
        ("The meter is read on 7 September (notes.md:5).", None),
        ("Nadia has the keys of the mill (notes.md:4).", "From tomorrow Hugo has the keys"),
        ("Nadia has the keys of the mill (list.csv:2).", "From tomorrow Hugo has the keys"),
        ("The first viewing of the film is on 27 November (days.md:3).", "has 4 December"),
        ("The cook is Ann (days.md:3).", None),
        ("Am 14. Dezember um 13 Uhr macht Frau Lind die Wartung (calls.md:1).", None),
        ("On 2026-08-04 the meter is at 100 kWh (diary.csv:2).", None),
    ],
)
def test_a_later_entry_of_notes_changes_an_earlier_one(
    tmp_path: Path, draft: str, note: str | None
) -> None:
    answer = verified_files(tmp_path, NOTES, draft)
    notes = [f.note or "" for f in answer.findings if f.code == "old_source"]
    assert (note in notes[0] if notes and note else notes == []) and bool(notes) == bool(note)


@pytest.mark.parametrize(
    ("draft", "is_old"),
    [
        ("The deposit is 40 % of the sum (fees v1.md:1-1).", True),
        ("The deposit is 40 % of the sum (fees v1.md).", True),
        ("Die Anzahlung ist 40 % (fees v1.md:1-1).", True),
        ("In v1 the deposit is 40 % of the sum (fees v1.md:1-1).", False),
        ("The deposit is 30 % (fees v2.md:1-1).", False),
        ("The key costs 5 euros (fees v1.md:1-1).", False),
        ("On 1 December the deposit is 40 % (fees v1.md:1-1).", True),
    ],
)
def test_who_cites_an_old_version_does_not_say_that_it_is_old(
    tmp_path: Path, draft: str, is_old: bool
) -> None:
    texts = {
        "fees v1": "The deposit is 40 % of the sum. The key costs 5 euros.",
        "fees v2": "The deposit is 30 %. The key costs 5 euros.",
    }
    with Engine(
        build(tmp_path, [document(name, [text]) for name, text in texts.items()])
    ) as engine:
        answer = engine.verify(VerifyRequest(draft=draft, now=NOW))
    assert ("old_source" in answer.counts) == is_old


SWAPS = {
    "rota.csv": "date,course,teacher\n2026-06-20,Evening sail,Sinead Rourke\n2026-06-27,Capsize training,Colm Brady\n",
    "moved.eml": f"{HEADERS}\nFrom 2 July Blue Hours goes out at 8 pm. From 2 July Young Ears will be presented by Al"
    " Wray. The day of Blue Hours stays Monday.\n",
    "shows 2026.csv": "start,show,host\n21:00,Blue Hours,Dov Perl\n18:00,Young Ears,Tamsin Vale\n",
    "swap.eml": f"{HEADERS.replace('2026', '2026')}\nSinead and I have swapped: she does the capsize training on"
    " 27 June.\n",
    "a.eml": f"{HEADERS.replace('Subject: ', 'Subject: Bottiglie ')}\nIl camion arriva fino al frantoio. L'ordine"
    " di bottiglie va a Carla Nuti. La bottiglia da 0,5 l costa 2 euro. La bottiglia da 0,75 l costa 3 euro.\n",
    "b.eml": f"{HEADERS.replace('Subject: ', 'Subject: Re: Bottiglie ').replace('14 Sep', '24 Sep')}\nIl camion"
    " non arriva più al frantoio. La nuova responsabile dell'ordine di bottiglie è Ada Corsi. La bottiglia da 0,5 l"
    " passa a 4 euro, l'altra resta come prima.\n",
}


@pytest.mark.parametrize(
    ("draft", "is_old"),
    [
        ("On 27 June Colm Brady gives the capsize training (rota.csv:3).", True),
        ("On 20 June Sinead Rourke gives the evening sail (rota.csv:2).", False),
        ("The show Blue Hours starts at 21:00 (shows 2026.csv:2).", True),
        ("The host of Blue Hours is Dov Perl (shows 2026.csv:2).", False),
        ("The host of Young Ears is Tamsin Vale (shows 2026.csv:3).", True),
        ("Il camion arriva fino al frantoio (a.eml:6).", True),
        ("L'ordine di bottiglie va a Carla Nuti (a.eml:6).", True),
        ("La bottiglia da 0,5 l costa 2 euro (a.eml:6).", True),
        ("La bottiglia da 0,75 l costa 3 euro (a.eml:6).", False),
    ],
)
def test_a_swap_on_a_day_and_a_change_in_italian(tmp_path: Path, draft: str, is_old: bool) -> None:
    answer = verified_files(tmp_path, SWAPS, draft)
    assert ("old_source" in answer.counts) == is_old


HUT = {
    "own/house.md": "Date: 2026-02-01\n\nDogs may sleep in the hut. Marta Klein serves the boiler in October.\n",
    "in/a.eml": f"{HEADERS}\nDogs are forbidden in the hut. Marta Klein steps down.\n",
}


@pytest.mark.parametrize(("trust_tier", "verdict"), [("untrusted", "clean"), ("general", "check")])
def test_what_is_untrusted_changes_nothing(tmp_path: Path, trust_tier: str, verdict: str) -> None:
    folder, workspace = write_files(tmp_path / "hut", HUT), Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([folder / "own"], IngestOptions(lexical_only=True))
        options = IngestOptions(lexical_only=True, flags={"trust_tier": trust_tier})
        admin.ingest([folder / "in"], options)
    with Engine(workspace) as engine:
        answer = engine.verify(VerifyRequest(draft="Dogs may sleep in the hut (house.md:3)."))
    assert answer.verdict == verdict


VACCINATIONS = "Tier,Impfstoff,Termin\nBalu,Tollwut,2027-10-05\nTiger,Tollwut,{}-10-15\n"
LISTS = {
    "Liste Oktober.csv": VACCINATIONS.format(2029),
    "Liste Oktober berichtigt.csv": "Fassung vom 02.11.2026, die alte Liste Oktober ist ungültig\n"
    + VACCINATIONS.format(2027),
}


@pytest.mark.parametrize(
    ("year", "name"), [(2029, "Liste Oktober.csv:3"), (2027, "Liste Oktober berichtigt.csv:4")]
)
def test_only_who_cites_the_older_file_of_two_is_in_doubt(
    tmp_path: Path, year: int, name: str
) -> None:
    workspace = Workspace(tmp_path / "c.db")
    with Admin(workspace) as admin:
        admin.ingest([write_files(tmp_path / "lists", LISTS)], IngestOptions(lexical_only=True))
    with Engine(workspace) as engine:
        draft = f"Tiger wird am 15. Oktober {year} gegen Tollwut geimpft ({name})."
        answer = engine.verify(VerifyRequest(draft=draft))
    assert ("old_source" in answer.counts) == (year == 2029)


@pytest.mark.parametrize(
    ("name", "draft", "note"),
    [
        ("rates-2023", "The rate is 4 euros [1].", "rates-2026.md is newer, by its name"),
        ("rates-2023", "The rate of 2023 is 4 euros [1].", None),
        ("rates-2026", "The rate is 5 euros [1].", None),
        ("old/fees", "The fee is 6 euros [1].", "it is old, by its name"),
    ],
)
def test_old_by_names(tmp_path: Path, name: str, draft: str, note: str | None) -> None:
    rates = {"rates-2023": "rate is 4", "rates-2026": "rate is 5", "old/fees": "fee is 6"}
    documents = [document(name, [f"The {rate} euros."]) for name, rate in rates.items()]
    with Engine(build(tmp_path, documents)) as engine:
        ids = [f"{name}#0", *(f"{other}#0" for other in rates if other != name)]
        answer = engine.verify(VerifyRequest(draft=draft, chunk_ids=ids, now=NOW))
    assert {f.note for f in answer.findings if f.code == "old_source"} == (
        {note} if note else set()
    )
    assert answer.verdict == ("check" if note else "clean")


@pytest.mark.parametrize(
    ("state", "code", "fails"),
    [("disputed", "disputed_source", False), ("rejected", "rejected_source", True)],
)
def test_marks(tmp_path: Path, state: Any, code: str, fails: bool) -> None:
    db = build(tmp_path, [document("tokens", [TEXT])])
    with Admin(db) as admin:
        put_mark(
            admin.workspace, "tokens#0", state, marked_by="Ana", reason="it was measured again"
        )
    with Engine(db) as engine:
        answer = verified_sources(engine, "tokens")
        [doubt] = [finding for finding in answer.findings if finding.code == code]
        assert doubt.fails == fails and doubt.note is not None
        assert "it was measured again" in doubt.note
        assert bool(answer.passages) != fails
        verification = engine.verify(VerifyRequest(draft=TEXT, now=NOW))
        assert verification.verdict == "check"


# -- Sentences, names and near copies are compared with what the passages say ----------------------

GUIDE = """The relay keeps a copy of each message for the audit. The server must not accept expired
tokens. All owners may share a folder with other teams. The nightly export is enabled by default.
Guides are not lent to guests. We urge guests to read the guides there. Unless a badge is new, it may
be replaced. A shared folder holds at least 20 GB for owners that are not guests.
Set the variable RELAY_TIMEOUT before the relay service starts in the cluster. The incident was
handled by Ana Ruiz in the Lund office. To show a trace of each thread, run::

    pkill -SIGUSR1 relay
Members are forbidden to lend a badge to visitors.
Do not buy food past its date
Always wash hands before and after handling food.
Don't mix meat with other food.
The rights in a badge are not passed on and end in May. A cover prevents meat juice from getting onto
other food. Price without tax: 918 euros net.
In frost keep the windows shut and call the office. Old hinges are no longer taken back by the shop.
The club pays only when the broken bench is exchanged.
Water in the cellar is insured only if the pump was on. The bar is closed in May for repairs.
Quiet hours on the deck are from 22:00 to 07:00. Half of the day costs 32 euros, the full day 55.
Gloves are compulsory; visitors may wear their own.
Fishing trips are covered for friends as well as for staff. Doors open 30 minutes before the concert.
Brewers may hold back a tenth of each claim. Ash piles are emptied by Anna Holm with great care.
The council is consulting on a toll of the harbour. Cracked mugs cannot be returned to the potter. The
share of the parking costs is not affected. Lights of the quay are paid on top. Kites are not allowed on the quay.
The kennel is swept on Tuesday by the crew. The cages are done on Friday. Anna Holm told Ben Kerr so.
Nothing may be kept in the yard of the quay.
"""


@pytest.fixture(scope="module")
def engine_statements(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine(
        build(tmp_path_factory.mktemp("statements"), [document("guide", [GUIDE])])
    ) as opened:
        yield opened


def verified_statements(engine: Engine, draft: str) -> Verification:
    return engine.verify(VerifyRequest(draft=draft, chunk_ids=["guide#0"], now=NOW))


@pytest.mark.parametrize(
    ("draft", "difference"),
    [
        ("The server must accept expired tokens.", "not"),
        ("The nightly export is disabled by default.", '"disabl" for "enabl"'),
        ("The relay does not keep a copy of each message for the audit.", "not"),
        ("The relay keeps no copy of each audit message.", "not"),
        ("Some of the owners can give a folder to a team [1].", '"some" for "all"'),
        ("An owner must share a folder [1].", '"must" for "may"'),
        ("After the relay starts, set RELAY_TIMEOUT in the cluster [1].", '"after" for "before"'),
        ("In frost open the windows and call [1].", '"open" for "shut"'),
        ("The shop still takes back hinges [1].", '"not" before "taken"'),
        ("The club pays before the bench is exchanged [1].", '"before" for "only when"'),
        ("Water in the cellar is insured [1].", 'goes on with "only if"'),
        ("The bar is closed in May because of high wages [1].", '"because of high wages"'),
        ("From 1 June trips are no longer covered for friends [1].", "not"),
        ("Doors open 30 minutes after the visitors come [1].", '"after" for "before"'),
        ("Brewers are required to retain a tenth of each claim [1].", "a duty"),
        ("The council has decided on a toll of the harbour [1].", "a decision"),
        (
            "The potter takes returned mugs, cracked mugs included [1].",
            "what the sentence includes",
        ),
        ("The price is 4 euros, lights of the quay included [1].", "what the sentence includes"),
        ("The share of the parking costs is increased [1].", "that it stays"),
        ("Visitors may fly kites on the quay [1].", '"may" for "not allowed"'),
        ("By the crew the kennel is swept on Friday [1].", "another day of the week"),
        ("With great care Ben Kerr empties ash piles [1].", '"Ben Kerr" for "Anna Holm"'),
    ],
)
def test_a_near_copy_that_differs_is_to_be_checked(
    engine_statements: Engine, draft: str, difference: str
) -> None:
    answer = verified_statements(engine_statements, draft)
    [finding] = [finding for finding in answer.findings if finding.code == "differs"]
    assert finding.verdict == answer.verdict == "check"
    assert difference in (finding.note or "")


@pytest.mark.parametrize(
    "draft",
    [
        "The server mustn't accept tokens that expired.",
        "Expired tokens are never accepted by the server.",
        "Every owner may share a folder with other teams.",
        "A shared folder holds no less than 20 GB for non-guest owners.",
        "The relay keeps a copy of each message for the audit.",
        "We do not lend guests the guides, and urge guests to read the guides there.",
        "What may be replaced are not new badges.",
        "Members may not lend a badge to visitors.",
        "Hands are always washed before and after handling food.",
        "Rights in a badge end in May and cannot be passed on.",
        "Under a cover, meat juice is not getting onto other food.",
        "The price without tax is 918 euros net.",
        "All owners may share a folder, and must share it with other teams only [1].",
        "Set the variable first, and start the relay service after it is set [1].",
        "In frost do not open the windows, and call the office [1].",
        "Nobody in the club wants to pay before someone has exchanged the bench [1].",
        "A shared folder holds no smaller amount than 20 GB for owners that are not guests.",
        "If the pump was on, water in the cellar is insured [1].",
        "The bar is closed in May because it is repaired [1].",
        "There is no noise on the deck from 22:00 to 07:00 [1].",
        "The whole day costs 55 euros [1].",
        "Everybody must wear gloves [1].",
        "Things may not be kept in the yard of the quay [1].",
    ],
)
def test_a_faithful_copy_does_not_differ(engine_statements: Engine, draft: str) -> None:
    assert "differs" not in verified_statements(engine_statements, draft).counts


RULES = {
    "de": "Der Schlüssel liegt nicht mehr im Tresor, Dr. Weiß trägt ihn bei sich. Kira hat nach der"
    " Impfung keine Beschwerden mehr. Im Röntgenraum dürfen Azubis nicht halten, bevor sie den Kurs"
    " haben. Besitzer dürfen nicht dabei sein, außer bei einer Operation. Rocky bekommt nach der"
    " Kontrolle seine Tablette eine Stunde vor dem Futter. Rechnungen können in Raten bezahlt"
    " werden. Alle Mitglieder müssen im Lager den Helm tragen. Der Kurs dauert nicht länger als"
    " drei Stunden.",
    "fr": "Les chiens ne sont plus admis dans la salle. Le sirop se prend avant le repas du soir."
    " Les stagiaires ne peuvent pas utiliser la scie avant la formation.",
    "es": "Los perros ya no pueden entrar en la sala. El jarabe se toma una hora antes de la comida."
    " El billete no cuesta más de 30 euros.",
    "it": "I cani non possono più entrare nella sala. Tutti i soci devono portare il casco."
    " Il circolo può usare la pista il martedì. Il circolo non può affittare la pista."
    " I bambini sotto i 12 anni entrano solo con un adulto. Disdetta gratuita fino a 21 giorni prima dell'arrivo."
    " Il riscaldamento si può accendere dal 15 ottobre.",
    "nl": "Honden mogen niet meer in de wachtkamer blijven. De siroop wordt voor het eten gegeven.",
}


@pytest.fixture(scope="module")
def engine_rules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    documents = [document(language, [text]) for language, text in RULES.items()]
    with Engine(build(tmp_path_factory.mktemp("rules"), documents)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("language", "draft", "difference"),
    [
        ("de", "Der Schlüssel liegt im Tresor [1].", '"not" before "tresor"'),
        ("de", "Kira hat nach der Impfung Beschwerden [1].", '"not" before "beschwerden"'),
        ("de", "Azubis dürfen im Röntgenraum halten, bevor sie den Kurs haben [1].", "not"),
        ("de", "Rocky bekommt seine Tablette nach dem Futter [1].", '"nach" for "vor"'),
        ("de", "Rechnungen müssen in Raten bezahlt werden [1].", '"müssen" for "können"'),
        ("de", "Die meisten Mitglieder müssen im Lager den Helm tragen [1].", '"die meisten"'),
        ("fr", "Les chiens sont admis dans la salle [1].", "not"),
        ("fr", "Le sirop se prend après le repas du soir [1].", '"après" for "avant"'),
        ("es", "Los perros pueden entrar en la sala [1].", "not"),
        ("es", "El jarabe se toma después de la comida [1].", '"después de" for "antes de"'),
        ("it", "I soci possono portare il casco [1].", '"possono" for "devono"'),
        ("it", "I cani possono entrare nella sala [1].", "not"),
        ("it", "I bambini sotto i 12 anni non possono entrare [1].", 'goes on with "solo con"'),
        ("it", "La disdetta è gratuita fino a 21 giorni dopo la fattura [1].", '"dopo" for "prima'),
        ("it", "Il riscaldamento va acceso il 15 ottobre [1].", '"va " for "può"'),
        ("nl", "Honden mogen in de wachtkamer blijven [1].", "not"),
        ("nl", "De siroop wordt na het eten gegeven [1].", '"na" for "voor"'),
    ],
)
def test_a_near_copy_differs_in_other_languages(
    engine_rules: Engine, language: str, draft: str, difference: str
) -> None:
    request = VerifyRequest(draft=draft, chunk_ids=[f"{language}#0"], now=NOW)
    [note] = [f.note for f in engine_rules.verify(request).findings if f.code == "differs"]
    assert difference in (note or "")


@pytest.mark.parametrize(
    ("language", "draft"),
    [
        ("de", "Im Tresor liegt der Schlüssel nicht [1]."),
        ("de", "Nach der Impfung ist Kira ohne Beschwerden [1]."),
        ("de", "Azubis dürfen im Röntgenraum erst halten, wenn sie den Kurs haben [1]."),
        ("de", "Bei einer Operation dürfen Besitzer dabei sein [1]."),
        ("de", "Rechnungen dürfen in Raten bezahlt werden [1]."),
        ("de", "Im Lager muss jedes Mitglied den Helm tragen [1]."),
        ("de", "Der Kurs dauert höchstens drei Stunden [1]."),
        ("fr", "Les stagiaires ne peuvent utiliser la scie qu'après la formation [1]."),
        ("es", "En la sala ya no entran perros [1]."),
        ("es", "El billete cuesta como máximo 30 euros [1]."),
        ("it", "Il circolo non può affittare la pista [1]."),
    ],
)
def test_a_faithful_copy_in_other_languages_has_no_doubts(
    engine_rules: Engine, language: str, draft: str
) -> None:
    request = VerifyRequest(draft=draft, chunk_ids=[f"{language}#0"], now=NOW)
    assert engine_rules.verify(request).verdict == "clean"


@pytest.mark.parametrize(
    ("source", "draft", "is_clean"),
    [
        ("They come to the drill with two engines, not one", "They come with two engines", True),
        ("They come to the drill with two engines, not one", "They come with one engine", False),
        ("Die Feier beginnt um 18 Uhr, nicht um 17 Uhr", "Die Feier beginnt um 18 Uhr", True),
        ("Die Feier beginnt um 18 Uhr, nicht um 17 Uhr", "Die Feier beginnt um 17 Uhr", False),
        ("La cena es a las 21 y no a las 20", "La cena es a las 21", True),
        ("The fitness tests of Lang are missing", "Lang has not done the fitness tests", True),
    ],
)
def test_what_is_said_after_not_is_not_what_holds(
    tmp_path: Path, source: str, draft: str, is_clean: bool
) -> None:
    with Engine(build(tmp_path, [document("n", [f"{source}."])])) as engine:
        answer = verified_sources(engine, "n", f"{draft} [1].")
    assert (answer.verdict == "clean") is is_clean


def test_the_language_of_few_words_is_no_reason_to_doubt(tmp_path: Path) -> None:
    text = "Los perros ya no pueden entrar en la sala de espera.\n"
    write_files(tmp_path, {"n/a.md": text})
    Admin(workspace := Workspace(tmp_path / "c.db")).ingest([tmp_path / "n"], IngestOptions())
    draft = "En la sala de espera ya no entran perros (a.md:1-1)."
    with Engine(workspace) as engine:
        assert engine.verify(VerifyRequest(draft=draft)).verdict == "clean"


@pytest.mark.parametrize(
    "draft",
    [
        "Die offene Sprechstunde ist am Mittwochnachmittag von 15 bis 18 Uhr",
        "Wir kaufen das Ultraschallgerät von Mindray",
        "Die Wäscherei Blank kommt jeden Freitag",
    ],
)
def test_later_words_of_other_languages_are_found(tmp_path: Path, draft: str) -> None:
    old = (
        "Die offene Sprechstunde am Mittwochnachmittag bleibt bestehen, 15 bis 18 Uhr.\n\n"
        "Wir kaufen das Ultraschallgerät von Mindray.\n\nDie Wäscherei Blank kommt jeden Freitag."
    )
    new = (
        "Die offene Sprechstunde am Mittwochnachmittag wird abgeschafft.\n\nWir nehmen doch das"
        " Gerät von Esaote, weil Mindray erst im Februar liefern kann.\n\n"
        "Wäscherei Blank: holt ab Dezember mittwochs statt freitags ab.\n"
    )
    write_files(tmp_path, {"n/Notiz 2026-06.md": old, "n/Notiz 2026-09.md": new})
    Admin(workspace := Workspace(tmp_path / "c.db")).ingest([tmp_path / "n"], IngestOptions())
    with Engine(workspace) as engine:
        answer = engine.verify(VerifyRequest(draft=f"{draft} (Notiz 2026-06.md)."))
    assert "old_source" in answer.counts


@pytest.mark.parametrize(
    ("later", "is_old"),
    [
        ("Paul Meyer is ill.", True),
        ("Paul Meyer was ill in January.", False),
        ("If Paul Meyer is ill, we wait.", False),
        ("Is Paul Meyer ill on Monday?", False),
        ("Wenn Paul Meyer krank ist, warten wir.", False),
    ],
)
def test_who_may_be_ill_or_was_is_not_away(tmp_path: Path, later: str, is_old: bool) -> None:
    draft = "The roof of the barn is repaired by Paul Meyer in April"
    mail = f"From: E <e@x.org>\nSubject: Plan\nDate: Mon, 2 Nov 2026 10:00:00 +0100\n\n{later}\n"
    texts = {"a.md": f"# Plan\n\nDate: 2 March 2026\n\n{draft}.", "m.eml": mail}
    answer = verified_files(tmp_path, texts, f"{draft} (a.md).")
    assert ("old_source" in answer.counts) is is_old


def test_the_name_of_a_person_tells_of_no_change(tmp_path: Path) -> None:
    draft = "Björn Hase bezieht den Raum am Hof"
    new = "Selin gibt die Liste an Björn Hase ab, er verwaltet sie ab sofort."
    texts = {"Protokoll 2026-04.md": f"{draft}.", "Protokoll 2026-05.md": new}
    answer = verified_files(tmp_path, texts, f"{draft} (Protokoll 2026-04.md).")
    assert "old_source" not in answer.counts


def test_a_name_that_begins_a_compound_is_known(tmp_path: Path) -> None:
    text = "Im Röntgenraum darf niemand ohne die Schürze warten."
    with Engine(build(tmp_path, [document("room", [text])])) as engine:
        draft = "The room for Röntgen needs an apron, as Klinik says [1]."
        answer = engine.verify(VerifyRequest(draft=draft, chunk_ids=["room#0"], now=NOW))
    assert [f.text for f in answer.findings if f.code == "unknown_name"] == ["Klinik"]


@pytest.mark.parametrize(
    ("draft", "places"),
    [
        ("A shared folder holds 30 GB [1].", 1),
        ("We will buy 30 GB more next year.", 1),
        ("Each of the new folders may hold up to 20 MB by default [1].", 1),
        ("A shared folder holds 30 GB [1]. We will buy 40 GB more next year.", 2),
    ],
)
def test_an_unsupported_figure_is_to_be_checked(
    engine_statements: Engine, draft: str, places: int
) -> None:
    answer = verified_statements(engine_statements, draft)
    assert answer.counts["unsupported_figure"] == places
    assert answer.verdict == "check"
    assert answer.validated_draft and answer.validated_draft.count("[[unsupported") == places


@pytest.mark.parametrize(
    "draft",
    [
        "It was written by Grace Hopper.",
        "The incident in the office was handled by Bob Lind in Lund.",
    ],
)
def test_a_name_that_stands_nowhere_is_a_remark(engine_statements: Engine, draft: str) -> None:
    answer = verified_statements(engine_statements, draft)
    assert answer.counts.get("unknown_name") == 1
    assert answer.verdict != "failed"


@pytest.mark.parametrize(("name", "is_unknown"), [("HUP", True), ("SIGUSR1", False), ("CPU", True)])
def test_an_acronym_in_place_of_the_cited_one_is_to_be_checked(
    tmp_path: Path, name: str, is_unknown: bool
) -> None:
    texts = ["The worker stops at once on the `SIGUSR1` signal.", "HUP reloads the CPU limits."]
    with Engine(build(tmp_path, [document("signals", texts)])) as engine:
        draft = f"The worker stops at once on the {name} signal [signals#0]."
        answer = engine.verify(VerifyRequest(draft=draft, now=NOW))
    assert ("unknown_name" in answer.counts) == is_unknown


@pytest.mark.parametrize(
    ("draft", "unknown"),
    [
        ("La Marasca costa 62 centesimi [1].", []),
        ("Since Marasca is on offer, we sell more [1].", []),
        ("La Dorica costa 62 centesimi [1].", ["Dorica"]),
        ("Oggi il pane lo porta il forno Sorbi di Torrita [1].", ["Sorbi di Torrita"]),
        ("Oggi il pane lo porta il forno Sorbi di Pienza [1].", []),
    ],
)
def test_a_name_begins_behind_a_function_word_and_may_have_a_place(
    tmp_path: Path, draft: str, unknown: list[str]
) -> None:
    text = "Vaso Marasca Verde: 62 centesimi. Oggi il forno Sorbi di Pienza porta il pane per noi."
    write_files(tmp_path, {"n/a.md": text, "n/b.md": "Siamo di Torrita."})
    Admin(workspace := Workspace(tmp_path / "c.db")).ingest([tmp_path / "n"], IngestOptions())
    with Engine(workspace) as engine:
        answer = engine.verify(VerifyRequest(draft=draft.replace("[1]", "(a.md)")))
    assert [f.text for f in answer.findings if f.code == "unknown_name"] == unknown


@pytest.mark.parametrize(("who", "is_other"), [("Samira", True), ("Ivo", False)])
def test_a_task_is_not_another_persons(tmp_path: Path, who: str, is_other: bool) -> None:
    tasks = "- [ ] Samira: order the truffles\n- [ ] Ivo: clean tanks 3 and 5 by 20 December\n"
    write_files(tmp_path, {"n/a.md": tasks})
    Admin(workspace := Workspace(tmp_path / "c.db")).ingest([tmp_path / "n"], IngestOptions())
    with Engine(workspace) as engine:
        draft = f"{who} has to clean tanks 3 and 5 by 20 December (a.md:2-2)."
        answer = engine.verify(VerifyRequest(draft=draft))
    assert ("differs" in answer.counts) == is_other


def test_languages_that_capitalize_nouns_have_no_names(engine_statements: Engine) -> None:
    draft = "Der Server nimmt die Nachricht an, und das Haus ist für die Kunden nicht offen."
    assert "unknown_name" not in verified_statements(engine_statements, draft).counts


# -- A judge gives opinions on covered sentences. They count only if they are required -------------

FALSE = "Elephants drink plenty of cold water every single day."
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def db_judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("judge"), [document("tokens", [TEXT])])


def answering(answer: Any) -> Callable[[Handler], None]:
    return lambda handler: handler.json({"choices": [{"message": {"content": answer}}]})


def verified_judge(
    db: Path, judge: Judge | None, draft: str = f"{TEXT}\n\n{FALSE}"
) -> Verification:
    with Engine(db, judge=judge) as engine:
        return engine.verify(VerifyRequest(draft=draft, chunk_ids=["tokens#0"], now=NOW))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("answer", "supported"),
    [
        ("Yes", True),
        ("No.", False),
        ("<think>Yes? Hardly.</think>\nNo", False),
        ("Not sure", None),
        ("\x1b[31m" * 100, None),
    ],
)
@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_opinions_on_covered_sentences_only(
    db_judge: Path, server: EmbeddingServer, kind: str, answer: str, supported: bool | None
) -> None:
    server.faults[CHAT] = answering(answer)
    judged = verified_judge(db_judge, Judge(f"{kind}:some-model:8b", server.url))
    [opinion] = judged.opinions
    assert opinion.supported is supported
    assert opinion.answer.isprintable() and len(opinion.answer) <= 200
    assert judged.judge == f"{kind}:some-model:8b"
    [body] = server.bodies_for(CHAT)
    assert body["model"] == "some-model:8b"
    assert body["messages"][-1]["content"] == f"Document: {TEXT}\nClaim: {TEXT}"


def test_no_answer_changes_the_verdict_if_it_is_not_required(
    db_judge: Path, server: EmbeddingServer
) -> None:
    for draft in (TEXT, FALSE, f"{TEXT} {FALSE}"):
        plain = verified_judge(db_judge, None, draft)
        for answer in ("Yes", "No", None, 7):
            server.faults[CHAT] = answering(answer)
            assert (
                verified_judge(db_judge, Judge("ollama:m", server.url), draft).verdict
                == plain.verdict
            )


def test_a_judge_that_is_required_fails_with_two_denials(
    db_judge: Path, server: EmbeddingServer
) -> None:
    server.faults[CHAT] = answering("No")
    with Engine(db_judge, judge=Judge("ollama:m", server.url)) as engine:
        verdicts = [
            engine.verify(
                VerifyRequest(draft=draft, chunk_ids=["tokens#0"], now=NOW, require=["judge"])
            )
            for draft in (TEXT, f"{TEXT}\n\n{TEXT}")
        ]
    assert [answer.verdict for answer in verdicts] == ["check", "failed"]
    assert verdicts[1].counts["judged_unsupported"] == 2


def test_a_judge_that_is_required_must_be_there(db_judge: Path) -> None:
    with Engine(db_judge) as engine:
        request = VerifyRequest(draft=TEXT, chunk_ids=["tokens#0"], now=NOW, require=["judge"])
        answer = engine.verify(request)
    assert (answer.verdict, answer.counts["not_checked"]) == ("failed", 1)


@pytest.mark.parametrize(
    "fault",
    [
        lambda handler: handler.json({"error": "no such model"}, 404),
        lambda handler: handler.json({"choices": []}),
        lambda handler: handler.text("", 302, location="http://192.0.2.1/"),
        lambda handler: handler.pour(b" "),
    ],
)
def test_a_judge_that_fails_is_reported(
    db_judge: Path,
    server: EmbeddingServer,
    fault: Callable[[Handler], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rolebundle.verify.judge.DEADLINE_SECONDS", 0.3)
    server.faults[CHAT] = fault
    judged = verified_judge(db_judge, Judge("ollama:m", server.url), TEXT)
    assert judged.verdict == "clean"
    assert judged.opinions == []
    assert judged.judge_problem and judged.judge_problem.startswith("the judge ollama:m failed: ")


@pytest.mark.parametrize("name", ["", "ollama", "ollama:", "static:m", "openai:m"])
def test_a_judge_needs_a_provider_and_a_model(name: str) -> None:
    with pytest.raises(RolebundleError, match=r"\[bad_judge\]"):
        Judge(name)


def test_a_key_goes_to_the_server_that_it_is_for(
    db_judge: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLEBUNDLE_OPENAI_KEY", "the-key")
    server.faults[CHAT] = answering("Yes")
    for kind, expected in (("openai", "Bearer the-key"), ("ollama", None)):
        server.seen.clear()
        verified_judge(db_judge, Judge(f"{kind}:m", server.url), TEXT)
        assert server.seen[0].headers.get("Authorization") == expected
