"""The governance flags that hold in a run: those of earlier runs, and those that it was given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolebundle.contracts.roots import Root
from rolebundle.ingest.authority import GOVERNANCE_KEYS, Authority
from rolebundle.ingest.manifests import FileDefaults
from rolebundle.ingest.metadata import validated
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
            return "manifests are turned off for it"
        return "its folder is untrusted" if flags.get("origin") == "untrusted" else ""

    def nested(self, location: str) -> dict[str, str]:
        """The remembered paths below a folder → what follows the folder in them."""
        prefix = location.rstrip(os.sep) + os.sep
        return {
            path: path[len(prefix) - 1 :]
            for path in sorted({*self.before, *self.after})
            if path.startswith(prefix) and path != location
        }

    def notes(self, start: str, location: str) -> Iterator[Skipped]:
        """What becomes of the flags that were remembered for a path and below it.

        Args:
            start: the path as it was given. Notes name it and not the real path.
            location: its real path.
        """
        remembered = {location: (start, flags_at(self.before, location))} | {
            path: (start.rstrip(os.sep) + relative, self.before.get(path, {}))
            for path, relative in self.nested(location).items()
        }
        for path, (shown, flags) in remembered.items():
            own, now = limits_in(flags), self.flags_at(path)
            kept = {key: value for key, value in without(own, self.current).items() if key in now}
            replaced = {key: value for key, value in own.items() if now.get(key) != value}
            if kept:
                message = f"{shown}: {describe(kept)}, as in an earlier ingest; "
                message += f"{lifting_options(kept)} lifts it"
                yield Skipped(shown, "flags_remembered", message)
            if replaced:
                message = f"{shown}: {describe(replaced)} of an earlier ingest is replaced"
                yield Skipped(shown, "flags_replaced", message)

    def defaults_at(self, location: str, root: Root) -> FileDefaults:
        """The defaults of the files of a root for which the flags of a path hold.

        Raises:
            ConfigurationError: ``bad_flag``: a flag of an earlier ingest is invalid.
        """
        limits = limits_in(self.flags_at(location))
        flags = {key: value for key, value in limits.items() if key in GOVERNANCE_KEYS}
        max_trust = limits.get("max_trust")
        place = "flags of an earlier ingest"
        validated({} if max_trust is None else {"trust_tier": max_trust}, place, "bad_flag")
        declared = validated({**root.options.meta, **flags}, place, "bad_flag")
        authority, _ = Authority(default_source=root.source_id).with_level(
            declared.declared_values(), max_trust=max_trust
        )
        return FileDefaults(authority, root.options.reader, root.options.separator)
