"""Generated drafts: no quote that was tampered with passes, and true quotes in other typography do.

The default sample has every kind a few times. The full counts are slow.
"""

import random
from collections.abc import Iterator
from itertools import islice

import pytest

from rolebundle.contracts.verification import Finding
from rolebundle.verification.draft.parse import parse_draft
from rolebundle.verification.draft.quotes import check_quotes
from support.quote_cases import Case, honest, tampered

SAMPLE = 120


def findings(case: Case) -> list[Finding]:
    draft = parse_draft(case.draft)
    cited = {quote.sentence: case.cited for quote in draft.quotes} if case.cited else {}
    return check_quotes(draft, case.passages, cited)


def passing(cases: Iterator[Case]) -> list[Case]:
    return [case for case in cases if not any(finding.fails for finding in findings(case))]


def is_recognized(case: Case) -> bool:
    """Whether the quote passes and the passage's own text comes back."""
    found = findings(case)
    if len(found) != 1 or found[0].fails:
        return False
    true_text = (found[0].true_text or "").rstrip(".")
    return " ".join(true_text.split()) == " ".join(case.true_text.split()).rstrip(".")


def test_a_sample_of_tampered_quotes() -> None:
    assert passing(islice(tampered(random.Random(1)), SAMPLE)) == []


def test_a_sample_of_true_quotes_in_other_typography() -> None:
    cases = islice(honest(random.Random(2)), SAMPLE)
    assert [case for case in cases if not is_recognized(case)] == []


@pytest.mark.slow
def test_2000_tampered_quotes() -> None:
    assert passing(islice(tampered(random.Random(3)), 2_000)) == []


@pytest.mark.slow
def test_2000_true_quotes_in_other_typography() -> None:
    cases = list(islice(honest(random.Random(4)), 2_000))
    assert sum(map(is_recognized, cases)) >= 0.995 * len(cases)
