"""The verdict of `verify`, its answer, and what holds for any draft."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.audit import AuditSettings
from rolebundle.contracts.verification import MAX_DRAFT_CHARACTERS, Verification, VerifyRequest
from rolebundle.engine import Engine
from rolebundle.errors import Interrupted, RolebundleError, UsageError
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.audit import AuditLog
from support.amounts import lengths, linear_time
from support.corpora import NOW, build, document

LIFETIME = "The lifetime of an access token is fifteen minutes."
HELMET = "A helmet must be worn in the yard at night."
FALSE = "Elephants drink plenty of cold water every single day."
IDS = ["tokens#0", "yard#0"]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = {"tokens": LIFETIME, "yard": HELMET}
    documents = [document(name, [text], sensitivity="public") for name, text in texts.items()]
    return build(tmp_path_factory.mktemp("verify"), documents)


@pytest.fixture(scope="module")
def engine(db: Path) -> Iterator[Engine]:
    with Engine(db) as opened:
        yield opened


def verified(
    engine: Engine, draft: str, *, whole_corpus: bool = False, **fields: Any
) -> Verification:
    evidence = {} if whole_corpus else {"chunk_ids": IDS}
    return engine.verify(VerifyRequest(draft=draft, now=NOW, **evidence, **fields))


with_both_kinds_of_evidence = pytest.mark.parametrize(
    "whole_corpus", [False, True], ids=["named", "whole corpus"]
)


class TestTheVerdict:
    @with_both_kinds_of_evidence
    def test_a_true_draft_passes(self, engine: Engine, whole_corpus: bool) -> None:
        answer = verified(
            engine, f'They wrote "{LIFETIME}" And: {HELMET}', whole_corpus=whole_corpus
        )
        assert (answer.verdict, answer.validated_draft) == ("nothing_wrong_found", None)
        assert answer.counts["exact"] == 1 and answer.counts["covered"] >= 1

    @with_both_kinds_of_evidence
    @pytest.mark.parametrize(
        ("draft", "code"),
        [
            (f'{HELMET} They wrote "{FALSE}"', "absent"),
            ("The lifetime of an access token is 47 minutes.", "unsupported_figure"),
            (f"{LIFETIME} [7]", "unknown_citation"),
        ],
    )
    def test_one_failure_fails(
        self, engine: Engine, draft: str, code: str, whole_corpus: bool
    ) -> None:
        answer = verified(engine, draft, whole_corpus=whole_corpus)
        assert answer.verdict == "failed"
        assert code in {finding.code for finding in answer.findings if finding.fails}
        assert answer.validated_draft not in (None, draft)

    @pytest.mark.parametrize("draft", ["", " \n ", "# Heading\n", "```\ncode\n```\n", "Thanks!"])
    @with_both_kinds_of_evidence
    def test_nothing_to_verify_is_no_pass(
        self, engine: Engine, draft: str, whole_corpus: bool
    ) -> None:
        assert verified(engine, draft, whole_corpus=whole_corpus).verdict == "nothing_to_check"

    @pytest.mark.parametrize("ids", [[], ["gone#0"]])
    def test_without_evidence_nothing_passes(self, engine: Engine, ids: list[str]) -> None:
        for require in (None, [], ["quotes"], ["citations"], ["figures"]):
            request = VerifyRequest(draft=LIFETIME, chunk_ids=ids, require=require)  # type: ignore[arg-type]
            assert engine.verify(request).verdict != "nothing_wrong_found"

    def test_coverage_fails_only_if_it_is_required(self, engine: Engine) -> None:
        draft = f'{FALSE} They wrote "{HELMET}"'
        answer = verified(engine, draft)
        assert answer.verdict == "nothing_wrong_found"
        assert answer.message == "1 quote; 1 sentence was not checked"
        assert answer.counts["uncovered"] >= 1
        assert verified(engine, draft, require=["coverage"]).verdict == "failed"
        assert verified(engine, FALSE, require=["quotes"]).verdict == "nothing_to_check"

    def test_a_draft_about_something_else_is_not_checked(self, engine: Engine) -> None:
        draft = "The moon is made of green cheese, which everybody loves as much as bananas."
        answer = verified(engine, draft, whole_corpus=True)
        assert answer.verdict == "nothing_to_check"

    def test_what_an_agent_filed_is_no_evidence(self, tmp_path: Path) -> None:
        filed = document("fact", [LIFETIME], origin="agent", trust_tier="untrusted")
        promoted = document("promoted", [HELMET], origin="agent", trust_tier="general")
        with Engine(build(tmp_path, [filed, promoted])) as engine:
            request = VerifyRequest(
                draft=f'They say "{LIFETIME}" [1]', chunk_ids=["fact#0"], now=NOW
            )
            answer = engine.verify(request)
            assert answer.counts["rejected_source"] == answer.counts["absent"] == 1
            answer = engine.verify(VerifyRequest(draft=f'They say "{LIFETIME}"', now=NOW))
            assert answer.counts["absent"] == 1
            answer = engine.verify(VerifyRequest(draft=f'They say "{HELMET}"', now=NOW))
            assert answer.counts["exact"] == 1

    def test_an_unchecked_language_is_no_pass(self, engine: Engine) -> None:
        draft = "Токен доступа действует пятнадцать минут, и это записано в правилах."
        for require in (None, ["coverage"], ["figures"], ["quotes"], []):
            assert verified(engine, draft, require=require).verdict != "nothing_wrong_found"


class TestTheAnswer:
    def test_findings_are_in_the_order_of_the_draft(self, engine: Engine) -> None:
        answer = verified(
            engine, f'{FALSE} [9]\n\nThey wrote "{HELMET}" [2].', require=["citations"]
        )
        starts = [finding.span.start for finding in answer.findings]
        assert starts == sorted(starts)
        assert sum(answer.counts.values()) == len(answer.findings)

    def test_a_redacted_draft_has_nothing_that_fails(self, engine: Engine) -> None:
        draft = f'{LIFETIME} {FALSE} They wrote "{FALSE}" [9].\n\n- {HELMET} [2]\n- {FALSE}\n'
        answer = verified(engine, draft, redact=True)
        assert answer.validated_draft is not None
        assert verified(engine, answer.validated_draft).verdict == "nothing_wrong_found"
        assert LIFETIME in answer.validated_draft and HELMET in answer.validated_draft

    def test_a_deadline_ends_it(self, engine: Engine) -> None:
        draft = "\n\n".join(f"{LIFETIME} It is number {number}." for number in range(600))
        with pytest.raises(Interrupted):
            verified(engine, draft, deadline_ms=5)
        assert verified(engine, LIFETIME).verdict == "nothing_wrong_found"

    @pytest.mark.parametrize("redact", [False, True])
    def test_what_is_not_checked_in_time_is_named_and_fails(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch, redact: bool
    ) -> None:
        """Each look at the clock finds it a second later."""
        monkeypatch.setattr("rolebundle.verification.verify.monotonic", count().__next__)
        monkeypatch.setattr("rolebundle.verification.verify.DEFAULT_SECONDS", 2.0)
        remainder = f"{FALSE}\n\n{HELMET}"
        draft = f"{LIFETIME}\n\n{HELMET}\n\n{remainder}"
        answer = verified(engine, draft, whole_corpus=True, require=["quotes"], redact=redact)
        [unchecked] = [finding for finding in answer.findings if finding.fails]
        assert (answer.verdict, unchecked.code) == ("failed", "not_checked")
        assert draft[unchecked.span.start : unchecked.span.end] == remainder
        assert unchecked.note == "2 of 4 sentences, from line 5 to the end, were not checked in 2 s"
        assert answer.counts["covered"] == 2
        assert answer.validated_draft is not None
        assert (HELMET in answer.validated_draft.partition(HELMET)[2]) != redact
        patient = verified(engine, draft, whole_corpus=True, require=["quotes"], deadline_ms=60_000)
        assert patient.verdict == "nothing_to_check"

    def test_it_is_recorded(self, tmp_path: Path) -> None:
        db = build(tmp_path, [document("tokens", [LIFETIME])])
        with AuditLog(db) as log:
            log.begin(AuditSettings(mode="on"))
        with Engine(db) as engine:
            engine.verify(VerifyRequest(draft=f"{FALSE} [9]", agent="ada"))
        [row] = AuditLog(db).rows(kind="verify")
        assert (row.agent, row.details["verdict"]) == ("ada", "failed")
        assert "Elephants" not in row.model_dump_json()


# -- laws ------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    [LIFETIME, HELMET, FALSE, '"', "“", "”", "'", "…", "...", "[1]", "[2, 9]", "[", "]", "(", ")",
     "tokens.md:1-1", "yard#0", "path:9-1", "\n", "\n\n", "- ", "> ", "|", "# ", "```", "\x00",
     "\u202e", "NEAR(", "OR", "*", "1,200", "12 %", "3 May 2026", "не", "漢字", "is not", ".", " "]
)  # fmt: skip
drafts = st.lists(pieces, max_size=25).map(" ".join) | st.text(max_size=200)


@given(drafts, st.booleans(), st.booleans())
@example("\x00", True, True)
@example('"' * 50, False, True)
def test_any_draft_gives_the_same_answer_twice(
    engine: Engine, draft: str, whole_corpus: bool, redact: bool
) -> None:
    """Laws 3 and 4: no text is syntax, and the same draft has the same answer."""
    fields: dict[str, Any] = {"draft": draft, "redact": redact, "publish": True}
    fields |= {"detail": "full", "now": NOW.isoformat()} | (
        {} if whole_corpus else {"chunk_ids": IDS}
    )
    answers = []
    for _ in range(2):
        try:
            answers.append(Operations(engine).call("verify", fields))
        except RolebundleError as error:
            assert any("\ud800" <= character <= "\udfff" for character in draft)
            answers.append({"code": error.code})
    assert answers[0] == answers[1]
    if "verdict" not in answers[0]:
        assert answers[0]["code"] == "draft_not_text"
        return
    for finding in answers[0]["findings"]:
        span = finding["span"]
        assert 0 <= span["start"] <= span["end"] <= len(draft)
    is_failing = any(finding["fails"] for finding in answers[0]["findings"])
    assert (answers[0]["verdict"] == "failed") == is_failing


@pytest.mark.parametrize("draft", ["\ud800", f"{LIFETIME} \udfff"])
def test_text_that_is_not_unicode_is_refused(engine: Engine, draft: str) -> None:
    with pytest.raises(UsageError) as caught:
        Operations(engine).call("verify", {"draft": draft})
    assert caught.value.code == "draft_not_text"


def test_a_draft_over_the_bound_is_refused(engine: Engine) -> None:
    with pytest.raises(UsageError):
        Operations(engine).call("verify", {"draft": "x" * (MAX_DRAFT_CHARACTERS + 1)})


@pytest.mark.sample(4)
@lengths
@pytest.mark.parametrize(
    "piece",
    [
        "x",
        "word ",
        f"{LIFETIME} ",
        '"',
        '"a" ',
        "[9] ",
        "tokens.md:1-1 ",
        "1 ",
        "\n",
        "(",
        "… ",
        "> a\n",
        "`",
        "*a",
        "[a](",
    ],
)
def test_named_evidence_takes_linear_time(engine: Engine, piece: str, length: int) -> None:
    # A finding takes as long as a hundred characters, and some of these have one for two.
    draft = (piece * length)[: length // 10]
    verified(engine, draft[:100])
    with linear_time(length):
        verified(engine, draft, publish=True, redact=True)
