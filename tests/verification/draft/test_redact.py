"""The validated draft has nothing that was not in the draft, and nothing that fails."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.verification import Finding, FindingCode, Span
from rolebundle.verification.draft import Sentence
from rolebundle.verification.findings import validated_draft

TEXT = "One is true. Two is not. Three is.\n\n- Four is a lie.\n- Five is true.\n"
SENTENCES = tuple(
    Sentence(m.start(), m.end(), m[0], "prose", True) for m in re.finditer(r"[A-Z][^.]*\.", TEXT)
)


def finding(start: int, end: int, code: FindingCode = "absent", *, fails: bool = True) -> Finding:
    span = Span(start=start, end=end)
    return Finding(check="quotes", code=code, fails=fails, span=span, text="")


def at(words: str, code: FindingCode = "absent") -> Finding:
    start = TEXT.index(words)
    return finding(start, start + len(words), code)


def test_marks_name_the_codes() -> None:
    marked = validated_draft(
        TEXT, SENTENCES, [at("Two is not.", "uncovered"), at("not")], redact=False
    )
    assert marked == TEXT.replace("Two is not.", "[[uncovered, absent: Two is not.]]")


def test_a_mark_does_not_repeat_a_secret() -> None:
    findings = [at("Two is not.", "uncovered"), at("not", "secret")]
    marked = validated_draft(TEXT, SENTENCES, findings, redact=False)
    assert marked == TEXT.replace("Two is not.", "[[uncovered, secret: Two is .]]")


spans = st.lists(
    st.tuples(st.integers(0, len(TEXT)), st.integers(0, len(TEXT))).map(sorted), max_size=6
)


def is_subsequence(part: str, complete: str) -> bool:
    characters = iter(complete)
    return all(character in characters for character in part)


@given(spans)
def test_redaction_only_removes_and_removes_all_that_fails(spans: list[list[int]]) -> None:
    findings = [finding(start, end) for start, end in spans]
    redacted = validated_draft(TEXT, SENTENCES, findings, redact=True)
    if redacted is None:
        assert all(start == end for start, end in spans)
        return
    assert is_subsequence(redacted, TEXT)
    for sentence in SENTENCES:
        is_hit = any(s < sentence.end and sentence.start < e and s < e for s, e in spans)
        assert (sentence.text in redacted) == (not is_hit)


@given(spans)
def test_without_its_marks_a_marked_draft_is_the_draft(spans: list[list[int]]) -> None:
    findings = [finding(start, end) for start, end in spans]
    marked = validated_draft(TEXT, SENTENCES, findings, redact=False)
    if marked is not None:
        assert re.sub(r"\[\[absent: |\]\]", "", marked) == TEXT
