"""What may be declared about a document: by itself, by a manifest, or by a flag."""

import re
import textwrap
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, StringConstraints

from rolebundle.contracts.base import Contract
from rolebundle.contracts.document import iso_utc
from rolebundle.contracts.overlay import ROLE_ID_PATTERN
from rolebundle.contracts.terms import Origin, Sensitivity, TrustTier


def _parse_moment(value: object) -> str:
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("must be an ISO 8601 date or time, such as 2026-03-01") from None
    else:
        raise ValueError("must be an ISO 8601 date or time, such as 2026-03-01")  # noqa: TRY004
    # A time without a zone is taken as UTC, so that the answer does not depend on the machine.
    return iso_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _without_repeats(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


_BETWEEN_KEYWORDS = re.compile(r"[,;\n]")
# "Kim, A. and Lee, B.": a comma may stand inside a name.
_BETWEEN_AUTHORS = re.compile(r"[;\n]|\s(?:and|&)\s")
_LONGEST_KEYWORD = 200
_LONGEST_AUTHOR = 1000
_MOST_LISTED = 50


def _keywords(value: object) -> object:
    return _listed(value, _BETWEEN_KEYWORDS, _LONGEST_KEYWORD)


def _authors(value: object) -> object:
    return _listed(value, _BETWEEN_AUTHORS, _LONGEST_AUTHOR)


def _listed(value: object, between: re.Pattern[str], longest: int) -> object:
    """Texts out of what other tools write: one text with separators, texts, or named things."""
    listed = between.split(value) if isinstance(value, str) else value
    parts: list[str] = []
    for one in listed if isinstance(listed, list) else [listed]:
        text = one.get("name") if isinstance(one, dict) else one
        if isinstance(text, int) and not isinstance(text, bool):
            text = str(text)  # Some collections name their authors by number.
        if not isinstance(text, str):
            raise ValueError("must be a text, or a list of texts")  # noqa: TRY004 (pydantic's contract)
        parts += textwrap.wrap(text, longest)
    # A thousand names would make the document look long, and are not what it is about.
    return list(dict.fromkeys(parts))[:_MOST_LISTED]


RoleName = Annotated[str, StringConstraints(pattern=ROLE_ID_PATTERN)]
Moment = Annotated[str, BeforeValidator(_parse_moment)]
Slug = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$"
    ),
]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
Slugs = Annotated[list[Slug], AfterValidator(_without_repeats)]
Keywords = Annotated[list[Slug], BeforeValidator(_keywords)]
Authors = Annotated[list[Line], BeforeValidator(_authors)]


class DeclaredMetadata(Contract):
    """The keys that front matter, a manifest or a flag may set. ``None`` is: not declared.

    ``keywords``, ``authors`` and ``author`` are how other tools say it: a document is found by
    them, keywords as further tags and authors as retrieval hints, the first fifty of either.
    """

    document_id: Slug | None = None
    source_id: Slug | None = None
    title: Line | None = None
    uri: Line | None = None
    document_type: Slug | None = None
    domain: Slug | None = None
    trust_tier: TrustTier | None = None
    updated_at: Moment | None = None
    language: Slug | None = None
    source_kind: Slug | None = None
    sensitivity: Sensitivity | None = None
    origin: Origin | None = None
    scope: Slug | None = None
    tags: Slugs | None = None
    keywords: Keywords | None = None
    applicable_roles: list[RoleName] | None = None
    excluded_roles: list[RoleName] | None = None
    retrieval_hints: list[Line] | None = None
    authors: Authors | None = None
    author: Authors | None = None
    supersedes: Slugs | None = None

    def declared_values(self) -> dict[str, Any]:
        """The declared values by key. Takes a third of the time of ``model_dump``."""
        return {key: value for key, value in self.__dict__.items() if value is not None}
