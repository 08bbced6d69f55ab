"""The answers of `overlay lint` and `policy lint`."""

from typing import Literal

from rolebundle.contracts.base import Contract


class LintProblem(Contract):
    """A problem in an overlay or a policy. ``place`` is the dotted path of the key.

    A note says what an overlay leaves to rolebundle. It is no problem.
    """

    level: Literal["error", "warning", "note"]
    place: str
    code: str
    message: str


class PolicyLint(Contract):
    """`policy lint`."""

    findings: list[LintProblem]


class OverlayProblems(Contract):
    """The problems of one overlay file."""

    path: str
    findings: list[LintProblem]


class RuleNames(Contract):
    """The names in a corpus that the source rules of an overlay can match, sorted.

    ``folders`` are globs of the files in each folder, at most 2000.
    """

    sources: list[str]
    document_types: list[str]
    domains: list[str]
    trust_tiers: list[str]
    folders: list[str]


class OverlayLint(Contract):
    """`overlay lint`: the problems of each overlay.

    ``corpus`` is the corpus on which the rules and the vocabulary were tried, and ``names`` are the
    names in it; null if there was none.
    """

    corpus: str | None
    names: RuleNames | None = None
    overlays: list[OverlayProblems]
