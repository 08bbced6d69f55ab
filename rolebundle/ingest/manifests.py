"""The manifest of an ingested folder, ``rolebundle.toml``, and what it says of each file.

Only the one of a folder that the owner named counts. Any other may have come with a download. It is
not even parsed, so that it can neither grant anything nor stop a run.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from rolebundle import system
from rolebundle.contracts.base import mistakes_in
from rolebundle.contracts.ingest import ManifestFile, ManifestRule
from rolebundle.errors import ConfigurationError, UsageError
from rolebundle.ingest.authority import Authority
from rolebundle.ingest.readers import NAMES
from rolebundle.policy.policy_file import problem_of
from rolebundle.text.references import may_be_stored
from rolebundle.text.words import counted

MANIFEST_NAME = "rolebundle.toml"


@dataclass(frozen=True)
class FileDefaults:
    """What flags and the manifest say of one file."""

    authority: Authority = field(default_factory=Authority)
    reader: str = ""
    separator: str = ""
    ignore_keys: frozenset[str] = frozenset()

    @cached_property
    def fingerprint(self) -> str:
        """All of it as one text, to compare it."""
        return json.dumps(asdict(self), default=sorted, sort_keys=True)


class Manifest(NamedTuple):
    """A manifest that counts. ``folder`` is where it lies; its globs are relative to it."""

    folder: Path
    file: ManifestFile

    def defaults(
        self, flags: FileDefaults, rules: Iterable[ManifestRule]
    ) -> tuple[FileDefaults, tuple[str, ...]]:
        """The defaults of a file.

        Args:
            flags: what the flags say of it.
            rules: the rules that match it. Later ones override earlier ones and ``[defaults]``.

        Returns:
            The defaults, and what the flags do not allow, as ``key: value``.
        """
        values = self.file.defaults.declared_values()
        reader = separator = ""
        max_trust, trust_documents = self.file.max_trust, self.file.trust_documents
        for rule in rules:
            values |= rule.declared_values()
            reader = rule.reader or reader
            separator = rule.separator or separator
            max_trust = rule.max_trust or max_trust
            if rule.trust_documents is not None:
                trust_documents = rule.trust_documents
        parts = (self.file.defaults, *self.file.rule)
        authority, refused = flags.authority.with_level(
            values,
            max_trust=max_trust,
            trusts_documents=trust_documents,
            sources=frozenset(part.source_id.casefold() for part in parts if part.source_id),
        )
        return FileDefaults(authority, reader, separator, frozenset(self.file.ignore_keys)), refused


def read_manifest(folder: Path) -> Manifest | str:
    """The manifest of a folder, or why it has none that counts; empty if there is no such file.

    Raises:
        ConfigurationError: it counts, and it cannot be read or is invalid.
    """
    path = folder / MANIFEST_NAME
    if os.path.islink(path):  # noqa: PTH114 - for a path that cannot be asked, no error
        return "it is a symbolic link"
    if not os.path.isfile(path):  # noqa: PTH113
        return ""
    try:
        with system.open_itself(path) as file:
            # Asked of the open file, because another one may have taken its place.
            user, content = os.fstat(file.fileno()).st_uid, file.read()
    except OSError as error:
        raise ConfigurationError(
            "bad_manifest", f"{path}: not readable ({error.strerror})", "check its permissions"
        ) from error
    if system.is_foreign(user):
        return f"it belongs to another user (uid {user})"
    return parse_manifest(content, path)


def parse_manifest(content: bytes, path: Path) -> Manifest:
    """The manifest with this content; ``path`` is that of the file.

    Raises:
        ConfigurationError: it is no TOML, or contains an unknown key or an invalid value.
    """
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = f"{path}: not readable as TOML ({error})"
        step = "correct the file and run again"
        raise ConfigurationError("bad_manifest", reason, step) from error
    try:
        file = ManifestFile.model_validate(values)
    except ValidationError as error:
        first, *more = mistakes_in(error, ManifestFile)
        place = first.place
        if place[0] == "rule" and len(place) > 1:
            # Rules have no names, and people count from 1.
            place = (f"rule {int(place[1]) + 1}", *place[2:])
        problem = problem_of(first._replace(place=place))
        others = f" (and {counted(len(more), 'more mistake')})" if more else ""
        raise ConfigurationError(
            "bad_manifest", f"{path}: {problem.place}: {problem.message}{others}", problem.hint
        ) from error
    for number, rule in enumerate(file.rule, start=1):
        if rule.reader and rule.reader not in NAMES:
            reason = f"{path} rule {number}: no reader is called {rule.reader!r}"
            step = f"readers: {', '.join(NAMES)}"
            raise ConfigurationError("unknown_reader", reason, step)
    return Manifest(path.parent, file)


def check_path(path: Path) -> None:
    """Check that a path can be stored.

    Raises:
        UsageError: it contains bytes that are not valid text, which Python decodes to unpaired
            surrogates.
    """
    if not may_be_stored(str(path)):
        problem = f"{path}: the path contains bytes that are not valid text"
        step = "rename the file or folder and run the same command again"
        raise UsageError("bad_path_name", problem, step)
