"""The governance flags that hold in a run: those of earlier runs, and those that it was given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolebundle.contracts.declared import DeclaredMetadata
from rolebundle.contracts.roots import Root
from rolebundle.contracts.terms import TRUST_TIERS
from rolebundle.errors import ConfigurationError
from rolebundle.ingest.authority import GOVERNANCE_KEYS, Authority
from rolebundle.ingest.manifests import FileDefaults
from rolebundle.ingest.metadata import shortened, validated
from rolebundle.ingest.path_flags import (
    Flags,
    FlagsByPath,
    combined,
    describe,
    flags_at,
    lifting_options,
    limits_in,
    without,
)
from rolebundle.ingest.roots import is_below, real_location
from rolebundle.ingest.walk import Skipped
from rolebundle.storage.connection import Corpus
from rolebundle.storage.records import path_flags, roots


def flags_of(corpus: Corpus, location: str) -> dict[str, Any]:
    """The metadata that the flags of earlier runs give to the file at an absolute path."""
    above = [root for root in roots.load(corpus) if is_below(location, root.location)]
    nearest = max(above, key=lambda root: len(root.location), default=None)
    governing = flags_at(path_flags.load(corpus), location)
    return {**(nearest.options.meta if nearest else {}), **governing}


@dataclass(frozen=True, slots=True)
class RunFlags:
    """The flags that are remembered before and after this run, and those that it was given."""

    before: FlagsByPath
    after: FlagsByPath
    current: Flags

    def flags_at(self, location: str) -> Flags:
        """The flags that hold for a file or folder in this run."""
        return combined(flags_at(self.after, location), self.current)

    def why_no_manifest(self, folder: Path) -> str:
        """Why the manifest of a folder does not count; empty if flags do not say so."""
        flags = self.flags_at(real_location(folder))
        if flags.get("manifests") is False:
            return "--no-manifests says so"
        return "its folder is untrusted" if flags.get("origin") == "untrusted" else ""

    def nested(self, location: str) -> dict[str, str]:
        """The remembered paths below a folder → what follows the folder in them."""
        prefix = location.rstrip(os.sep) + os.sep
        return {
            path: path[len(prefix) - 1 :]
            for path in sorted({*self.before, *self.after})
            if path.startswith(prefix) and path != location
        }

    def _note(self, path: str, own: Flags, now: Flags) -> Iterator[Skipped]:
        """What becomes of the flags ``own`` that were remembered for a path."""
        remembered = {key: value for key, value in without(own, self.current).items() if key in now}
        replaced = {key: value for key, value in own.items() if now.get(key) != value}
        if remembered:
            yield Skipped(
                path,
                "flags_remembered",
                f"{path}: {describe(remembered)}, as in an earlier ingest; "
                f"{lifting_options(remembered)} lifts it",
            )
        if replaced:
            yield Skipped(
                path,
                "flags_replaced",
                f"{path}: {describe(replaced)} of an earlier ingest is replaced",
            )

    def notes(self, start: str, location: str) -> list[Skipped]:
        """What becomes of the flags that were remembered for a path and below it.

        Args:
            start: the path as it was given. Notes name it and not the real path.
            location: its real path.
        """
        before = limits_in(flags_at(self.before, location))
        notes = list(self._note(start, before, self.flags_at(location)))
        for path, relative in self.nested(location).items():
            own = limits_in(self.before.get(path, {}))
            notes += self._note(start.rstrip(os.sep) + relative, own, self.flags_at(path))
        return notes


def defaults_for(flags: Flags, declared: DeclaredMetadata, root: Root) -> FileDefaults:
    """The defaults of files for which these governance flags hold."""
    limits = limits_in(flags)
    governed = {key: value for key, value in limits.items() if key in GOVERNANCE_KEYS}
    values = validated(governed, "flags of an earlier ingest", "bad_flag")
    ungoverned = {
        key: value for key, value in declared.declared_values().items() if key not in governed
    }
    max_trust = limits.get("max_trust")
    if max_trust not in (None, *TRUST_TIERS):
        raise ConfigurationError(
            "bad_flag",
            f"flags of an earlier ingest: max_trust = {shortened(max_trust)} is no trust tier",
            "ingest the path once with --max-trust",
        )
    authority, _ = Authority(default_source=root.source_id).with_level(
        {**ungoverned, **values.declared_values()}, max_trust=max_trust
    )
    return FileDefaults(authority, root.options.reader, root.options.separator)
