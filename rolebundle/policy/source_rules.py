"""Which documents the rules of an overlay match. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rolebundle.contracts.document import REMEMBERED_KIND, DocumentMetadata
from rolebundle.contracts.overlay import SourceRule
from rolebundle.storage.content.documents import DocumentKind
from rolebundle.text.globs import compile_glob


class RuleSubject(NamedTuple):
    """What rules look at in a document.

    Attributes:
        names: its source id, type and domain.
        paths: the path of its file; for a remembered fact also that of the file of its source.
    """

    names: tuple[str, str, str]
    paths: tuple[str, ...]


def rule_subject(document: DocumentMetadata | DocumentKind, path: str) -> RuleSubject:
    """What rules look at in a document whose file has this path within the ingested folder."""
    # What a role rejects must not come back as a fact. The path of a fact is below its source's.
    paths = (path, path.rpartition("/")[0]) if document.source_kind == REMEMBERED_KIND else (path,)
    return RuleSubject((document.source_id, document.document_type, document.domain), paths)


def rule_matches(rule: SourceRule, subject: RuleSubject) -> bool:
    """Whether a rule matches a document."""
    if rule.pattern is None:
        return any(map(_in_any_case(rule.path or "").match, subject.paths))
    # A plain substring takes linear time, whatever the pattern is.
    pattern = rule.pattern.casefold()
    return any(pattern in name.casefold() for name in subject.names)


@lru_cache(maxsize=1024)
def _in_any_case(glob: str) -> re.Pattern[str]:
    return re.compile(compile_glob(glob).pattern, re.DOTALL | re.IGNORECASE)
