"""Generated drafts: no quote that was tampered with passes, and true quotes in other typography do.

The default sample has every kind a few times. The full counts are slow.
"""

import random
from collections.abc import Iterator
from itertools import islice

from rolebundle.verification.draft import parse_draft
from rolebundle.verification.quotes import QuoteResult, check_quote, is_term
from support.amounts import rounds
from support.quote_cases import Case, honest, tampered


def results(case: Case) -> list[tuple[QuoteResult, bool]]:
    """What was found out about each quote, and whether it fails."""
    found = []
    for sentence in parse_draft(case.draft):
        for start, end in sentence.quotes:
            result = check_quote(case.draft[start:end], case.passages, case.cited)
            is_own = is_term(case.draft[start:end]) and not case.cited
            found.append((result, result.code not in ("exact", "normalized") and not is_own))
    return found


def passing(cases: Iterator[Case]) -> list[Case]:
    return [case for case in cases if not any(fails for _, fails in results(case))]


def is_recognized(case: Case) -> bool:
    """Whether the quote is found and the passage's own text comes back."""
    found = results(case)
    if len(found) != 1 or found[0][1]:
        return False
    true_text = (found[0][0].true_text or "").rstrip(".")
    return " ".join(true_text.split()) == " ".join(case.true_text.split()).rstrip(".")


@rounds(120, 2_000)
def test_tampered_quotes_fail(rounds: int) -> None:
    assert len(passing(islice(tampered(random.Random(1)), rounds))) <= rounds / 1_000


@rounds(120, 2_000)
def test_true_quotes_in_other_typography_are_recognized(rounds: int) -> None:
    cases = list(islice(honest(random.Random(2)), rounds))
    assert sum(map(is_recognized, cases)) >= 0.995 * len(cases)
