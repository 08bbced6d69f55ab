"""Rows 34 and 35: any task text whatever gives a bundle or a coded error."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rolebundle.contracts.bundle import RetrievalBundle
from support.commands import invoke, is_coded, run

TEXTS = {
    "operators": "token AND NOT (rotation OR NEAR(key value, 3)) *",
    "a column": 'content: token title:"x" {title tags}: y',
    "a prefix": "tok* ^token",
    "an open quote": '"token rotation',
    "quotes": "\"\"\"'''``",
    "an open bracket": "(((((",
    "operators alone": "AND OR NOT NEAR",
    "SQL": "'; DROP TABLE chunk; --",
    "FTS5 commands": "INSERT INTO lexical(lexical) VALUES('delete-all')",
    "punctuation alone": "?!.,;:-_#+*~<>|@€%&/()=",
    "emoji": "🚀 release 👩‍🚒 👍🏽 🇩🇪",
    "right to left": "סיסמה token مفتاح",
    "overrides": "\u202etoken\u202c \u2066x\u2069",
    "invisible": "\u200b\u200c\u200d\ufeff\u00ad\U000e0041",
    "combining": "z̸̢̛a̴l̵g̶o̷ " * 30,
    "controls": "a\x01b\x1b[31mc\x07\x7f",
    "a NUL": "token\x00rotation",
    "a NUL alone": "\x00",
    "100 kB of one word": "token " * 17_000,
    "100 kB without a space": "a" * 100_000,
    "100 kB of different words": " ".join(f"w{n}" for n in range(15_000)),
    "100 kB of emoji": "🚀" * 25_000,
    "100 kB of quotes": '"' * 100_000,
    "100 kB of combining marks": "a" + "\u0301" * 50_000,
    "100 kB of a compound": "a-" * 50_000,
    "Chinese": "密钥轮换和发布风险",
    "Thai": "การหมุนเวียนโทเค็น",
    "a lone surrogate": "token \ud800",
    "bytes that are no text": "token \udcff",
    "one letter": "x",
    "stop words": "what is the",
    "nothing": "",
    "spaces": " \t\n\u2003",
    "an option": "--role",
    "a number": "1e999",
    "lines": "one\ntwo\r\nthree",
}
CODED = {"nothing": "empty_task", "spaces": "empty_task",
         "a lone surrogate": "task_not_text", "bytes that are no text": "task_not_text"}  # fmt: skip


# Law 4 has the long texts as well, but not through the command line.
SHORT = [name for name in TEXTS if not name.startswith("100 kB")]
SAMPLE = [
    (name, (("json", "text", "prompt")[number % 3],))
    for number, name in enumerate([*SHORT, "100 kB of emoji"])
]
ALL = [pytest.param(name, ("json", "text", "prompt"), marks=pytest.mark.slow) for name in TEXTS]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "forms"), [*SAMPLE, *ALL])
def test_a_task_is_text(sample_without_vectors: Path, name: str, forms: tuple[str, ...]) -> None:
    for form in forms:
        outcome = invoke(
            "retrieve", "--lexical-only", "--role", "mossline-security-reviewer", "--format", form,
            "--db", sample_without_vectors, "--", TEXTS[name],
        )  # fmt: skip
        is_coded(outcome)
        if name in CODED:
            assert (outcome.code, outcome.out) == (2, "")
            assert CODED[name] in outcome.err
            continue
        assert (outcome.code, outcome.err) == (0, ""), outcome
        if form == "json":
            bundle = RetrievalBundle.model_validate_json(outcome.out)
            assert bundle.query.task_text == TEXTS[name]
        else:
            assert "\x1b" not in outcome.out
            assert "\u202e" not in outcome.out.partition("\n\n")[0]


@settings(suppress_health_check=list(HealthCheck))
@given(task=st.text(max_size=60), role=st.sampled_from([None, "mossline-docs-writer"]))
def test_any_text_at_all(sample_without_vectors: Path, task: str, role: str | None) -> None:
    named = ("--role", role) if role else ()
    outcome = invoke(
        "retrieve",
        *named,
        "--lexical-only",
        "--format",
        "json",
        "--db",
        sample_without_vectors,
        "--",
        task,
    )
    is_coded(outcome)
    assert outcome.code == (0 if task.strip() and outcome.code == 0 else 2)
    if outcome.code == 0:
        RetrievalBundle.model_validate_json(outcome.out)


@pytest.mark.parametrize(
    "reference", ["\udcff", "a\udcffb:1-2", "a\0b", "%s", "x" * 100_000, "a:1-999999999"]
)
def test_references_that_could_hurt(sample_without_vectors: Path, reference: str) -> None:
    for option in ((), ("--json",)):
        outcome = invoke("get", *option, "--db", sample_without_vectors, "--", reference)
        assert (outcome.code, outcome.out) == (2, ""), outcome
        assert "[not_found]" in outcome.err


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are bytes")
def test_bytes_in_arguments(sample_db: Path) -> None:
    """As a shell hands them over: invalid UTF-8 in every place that takes a text."""
    bad = b"token \xff\xfe \xc3\x28"
    for arguments, code in (
        (("retrieve", bad), 2),
        (("retrieve", "x", "--role", bad), 2),
        (("retrieve", "x", "--overlay", bad), 3),
        (("get", bad), 2),
        (("ingest", bad), 2),
        (("nonsense" + os.fsdecode(bad),), 2),
        (("corpus", "backup", bad), 2),
        (("corpus", "quarantine", "release", bad), 2),
        (("mark", "remove", bad), 2),
        (("remember", "forget", bad, "--by", "Ana"), 2),
        (("overlay", "demo", "--db", bad), 2),
    ):
        more = () if len(arguments) == 1 or "--db" in arguments else ("--db", sample_db)
        outcome = run(*arguments, *more)
        assert outcome.code == code, outcome
        assert outcome.out == ""
        is_coded(outcome)
