"""Texts that are no result as a whole; what only mentions an error is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.verification.gate.no_result import fault_of
from support.amounts import lengths, linear_time

CODES = {
    "empty_output": ["", " \n\t", "\ufeff", "\x00" * 9, "\u200b", "{}", "[]\n", "...", "---"],
    "error_output": [
        "Error", "FAILED", "ERROR: x", "ValueError: x", "java.io.IOException: x", "fatal: no",
        "error[E0382]: borrow of moved value", "npm ERR! code 1", "curl: (6) no host",
        "make: *** [all] Error 2", "sh: 1: pandoc: not found", "cat: x: No such file or directory",
        "psql: error: connection failed", "The operation timed out", "Build failed with 3 errors",
        "Process exited with code 1", "Something went wrong", "404: Not Found", "HTTP 500",
        "502 Bad Gateway", "2026-11-22 12:00:00 ERROR no model", "[ERROR] failed to start",
        "An unexpected error occurred.", "Prompt is too long", "No output", "not implemented",
        "Could not find the file.", "Failed to load the data", '{"detail": "Not found."}',
        '{"status": "error", "message": "x"}', '{"success": false}',
        "<Error><Code>AccessDenied</Code></Error>",
        "<html><title>Page not found · GitHub</title></html>",
        "error: 1\n" * 500,
    ],
    "refusal": [
        "I'm sorry, but I can't help with that.", "I cannot complete this.", "I ran out of time.",
        "As an AI language model, I have no opinion.", "We were unable to do it.",
        "Sorry, I don't have access to the data.", "The task could not be completed.",
        "Please provide the data.", "I need more information.", "> I have not finished yet.",
    ],
    "placeholder": [
        "TODO", "# R\n\nTBD\n", "- [ ] TODO: all", "[insert summary here]", "<your text>", "None",
        "{{ report }}", "Coming soon!", "This is a placeholder.", "Lorem ipsum dolor sit amet, x",
        "# Title", "## A\n\n## B\n", "Done.", "Task completed successfully!", "Hello, world!",
        "null\n" * 30,
    ],
}  # fmt: skip
RESULTS = [
    "42", "Yes.", "v3.0.1", "The token lives for 24 hours.", "Failed tests: 0. Passed: 14.",
    "Error rate: 0.2% (was 1.4%).", "Error handling was moved to the edge.", "No findings.",
    "Not found in 2019; first seen in 2020.", "Errors are handled: the server retries twice.",
    "Access denied events are logged with the agent's id.", "Unable to reproduce on 3.0.2.",
    "The report was not changed; it had the right value.", "Todo app: a list of items",
    "None of the 14 documents mention it.", "Killed 3 processes.", '{"error": null, "rows": []}',
    "We cannot recommend the upgrade: two of five clients lose notes.", '{"id": 1, "error": "x"}',
    "Sorry for the delay; the report has two findings.", "Pending orders: 3",
    "<html><title>Error handling - Mossline</title><p>Text</p></html>", "import sys\n",
    "Not found is status 404. " + " ".join(f"Case {n} is rule{n}." for n in range(40)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for code, texts in CODES.items() for text in texts]
)
def test_what_is_no_result(code: str, text: str) -> None:
    fault = fault_of(text.encode())
    assert fault is not None
    assert fault.code == code


@pytest.mark.parametrize("text", RESULTS)
def test_what_is_a_result(text: str) -> None:
    assert fault_of(text.encode()) is None


def test_an_answer_may_be_short() -> None:
    assert fault_of(b"Done.", is_prose=False) is None
    assert fault_of(b"# a comment\n", is_prose=False) is None


def test_a_text_of_another_encoding_and_no_text() -> None:
    assert fault_of("Traceback (most recent call last):\n".encode("utf-16")) is not None
    assert fault_of("Ein Bericht über Schlüssel".encode("latin-1")) is None
    assert fault_of(bytes(range(256)) * 4) is None


def test_the_end_of_a_long_log_counts() -> None:
    log = "step done\n" * 50_000
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x\n'
    for text, is_result in [
        (log, True), (log + trace, False), (log + trace + "retrying\nall done\n", True)
    ]:  # fmt: skip
        assert (fault_of(text.encode(), is_prose=False) is None) == is_result
    assert fault_of(b"\n" * 300_000 + b"text") is None


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_every_content_is_judged(data: bytes) -> None:
    fault = fault_of(data)
    if not data.strip():
        assert fault is not None
    if fault is not None:
        assert len(fault.message) < 200


@lengths
@pytest.mark.parametrize(
    "unit",
    ["error ", "error: ", " ", "-", "[", "<!--", "{", "a: ", "sorry ", "\t-", "<h1", "5", "I can "],
)
def test_a_text_takes_linear_time(unit: str, length: int) -> None:
    data = (unit * (length // len(unit)) + "x").encode()
    with linear_time(length):
        fault_of(data)
