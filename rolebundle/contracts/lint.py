"""The answers of `overlay lint` and `policy lint`."""

from typing import Literal

from rolebundle.contracts.base import Contract, list_of


class LintProblem(Contract):
    """A problem in an overlay or a policy. ``place`` is the dotted path of the key.

    A note says what an overlay leaves to rolebundle. It is no problem.
    """

    level: Literal["error", "warning", "note"]
    place: str
    code: str
    message: str


PolicyLint = list_of(LintProblem, "findings", "PolicyLint", "`policy lint`.")


class OverlayProblems(Contract):
    """The problems of one overlay file."""

    path: str
    findings: list[LintProblem]


class OverlayLint(Contract):
    """`overlay lint`: the problems of each overlay.

    ``corpus`` is the corpus on which the rules and the vocabulary were tried, and ``names`` are the
    names in it that source rules can match, sorted: ``sources``, ``document_types``, ``domains``,
    ``trust_tiers`` and ``folders`` (globs of the files in each folder, at most 2000). Both are null
    if there was none.
    """

    corpus: str | None
    names: dict[str, list[str]] | None = None
    overlays: list[OverlayProblems]
