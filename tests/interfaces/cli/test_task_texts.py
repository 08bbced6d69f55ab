"""Rows 34 and 35: any task text whatever gives a bundle or a coded error."""

import os
import sys
from pathlib import Path

import pytest

from rolebundle.contracts.bundle import RetrievalBundle
from support.commands import invoke, is_coded, run

TEXTS = {
    "operators": "token AND NOT (rotation OR NEAR(key value, 3)) *",
    "SQL": "'; DROP TABLE chunk; --",
    "punctuation alone": "?!.,;:-_#+*~<>|@€%&/()=",
    "overrides": "\u202etoken\u202c \u2066x\u2069",
    "invisible": "\u200b\u200c\u200d\ufeff\u00ad\U000e0041",
    "controls": "a\x01b\x1b[31mc\x07\x7f",
    "a NUL": "token\x00rotation",
    "100 kB of emoji": "🚀" * 25_000,
    "a lone surrogate": "token \ud800",
    "bytes that are no text": "token \udcff",
    "nothing": "",
    "spaces": " \t\n\u2003",
    "an option": "--role",
    "lines": "one\ntwo\r\nthree",
}
"""What the command line has to cope with. Law 4 has many more texts."""
CODED = {"nothing": "empty_task", "spaces": "empty_task",
         "a lone surrogate": "task_not_text", "bytes that are no text": "task_not_text"}  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["json", "text", "prompt"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_task_is_text(sample_without_vectors: Path, name: str, form: str) -> None:
    options = ("--lexical-only", "--role", "mossline-security-reviewer", "--format", form)
    outcome = invoke("retrieve", *options, "--db", sample_without_vectors, "--", TEXTS[name])
    is_coded(outcome)
    if name in CODED:
        assert (outcome.code, outcome.out) == (2, "")
        assert CODED[name] in outcome.err
        return
    assert (outcome.code, outcome.err) == (0, ""), outcome
    if form == "json":
        bundle = RetrievalBundle.model_validate_json(outcome.out)
        assert bundle.query.task_text == TEXTS[name]
    else:
        assert "\x1b" not in outcome.out
        assert "\u202e" not in outcome.out.partition("\n\n")[0]


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
        (("retrieve", "x", "--role", bad), 3),
        (("overlay", "show", bad), 3),
        (("get", bad), 2),
        (("ingest", bad), 2),
        (("nonsense" + os.fsdecode(bad),), 2),
        (("corpus", "backup", bad), 2),
        (("corpus", "quarantine", "release", bad), 2),
        (("mark", "remove", bad), 2),
        (("remember", "forget", bad, "--by", "Ana"), 2),
        (("status", "--db", bad), 2),
    ):
        more = () if len(arguments) == 1 or "--db" in arguments else ("--db", sample_db)
        outcome = run(*arguments, *more)
        assert outcome.code == code, outcome
        assert outcome.out == ""
        is_coded(outcome)
