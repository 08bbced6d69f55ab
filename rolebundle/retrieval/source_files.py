"""The files behind an answer: where they are, and whether they changed since they were ingested.

What a file is like today is no part of the corpus, so it decides about warnings only
(docs/decisions/0026).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import sha256
from threading import Thread
from typing import Literal

from rolebundle import system
from rolebundle.contracts.terms import WarningCode
from rolebundle.retrieval.passage_text import one_line
from rolebundle.storage.documents import StoredFile
from rolebundle.text.words import counted, first_of

SourceState = Literal["same", "changed", "gone", "unknown"]

MAX_SECONDS = 1.0
"""How long an answer waits for its files. A dead network mount would block for minutes."""
_MAX_HASHED_BYTES = 8_000_000
"""A larger file with another time of change counts as changed without being read."""
_MAX_NAMED = 5
_PATH_CHARS = 200
_MAY_HAVE_SECRET = re.compile(r"[\w+=-]{16}|[:@]")


_stuck: list[Thread] = []
"""The last check that did not end within its time; it may still run."""


def file_states(files: Sequence[StoredFile], seconds: float) -> dict[str, SourceState]:
    """Location → what became of each file. Those not looked at in time are ``unknown``.

    If the check of an earlier answer still hangs, no file is looked at.
    """
    states: dict[str, SourceState] = {file.location: "unknown" for file in files}
    if files and not any(check.is_alive() for check in _stuck):
        found: dict[str, SourceState] = {}
        checked = ((file.location, file_state(file)) for file in files)
        check = Thread(target=found.update, args=(checked,), daemon=True)
        check.start()
        check.join(seconds)
        if check.is_alive():
            _stuck[:] = [check]
        states |= found.copy()
    return states


def are_reachable(locations: Sequence[str]) -> bool:
    """Whether the file system answers for all of these places in time."""
    files = [StoredFile(location, "", "", "") for location in locations]
    return "unknown" not in file_states(files, MAX_SECONDS).values()


def file_state(file: StoredFile) -> SourceState:
    """What became of a file since it was ingested.

    The content of a small file decides if only the time of its last change differs.
    """
    try:
        status = os.lstat(file.location)
        if not stat.S_ISREG(status.st_mode) or status.st_size != file.size:
            return "changed"
        if status.st_mtime_ns == file.modified_ns:
            return "same"
        if status.st_size > _MAX_HASHED_BYTES:
            return "changed"
        return "same" if _content_hash(file.location, file.size) == file.content_hash else "changed"
    except (FileNotFoundError, NotADirectoryError):
        return "gone"
    except (OSError, ValueError):
        return "unknown"


def _content_hash(location: str, size: int) -> str:
    with system.open_itself(location) as file:
        # One byte more than expected, so that a file that grows has another hash.
        return sha256(file.read(size + 1), usedforsecurity=False).hexdigest()


def shown_path(location: str, path: str) -> str | None:
    """The absolute path to show of a file; ``None`` if it has none, or if a secret is in its name.

    Args:
        location: its place on this machine.
        path: its path within its root, in which secrets are masked.
    """
    folder = location.removesuffix(path.replace("/", os.sep))
    if folder == location or not os.path.isabs(folder):  # noqa: PTH117 - of thousands of files
        return None
    return None if _has_secret(folder) else location


@lru_cache(maxsize=1024)
def _has_secret(folder: str) -> bool:
    # The search for secrets takes a tenth of a second to load, and most folders have short names.
    if not _MAY_HAVE_SECRET.search(folder):
        return False
    # Imported here, because re2 takes time.
    from rolebundle.scan.confidential import without_secrets

    return without_secrets(folder) != folder


def source_warnings(files: Collection[StoredFile]) -> dict[WarningCode, str]:
    """The warning about files that changed, are gone, or could not be checked, if there are any."""
    known = [file for file in files if file.modified_ns]
    states = file_states(list({file.location: file for file in known}.values()), MAX_SECONDS)
    outcomes = {"changed": "changed", "gone": "no longer there", "unknown": "could not be checked"}
    paths = {
        state: sorted({file.path for file in known if states[file.location] == state})
        for state in outcomes
    }
    found = [f"{_named(named)} {outcomes[state]}" for state, named in paths.items() if named]
    if not found:
        return {}
    message = f"since the ingest: {'; '.join(found)}"
    code: WarningCode = "SOURCE_UNCHECKED"
    if paths["changed"] or paths["gone"]:
        code, message = "SOURCE_CHANGED", f"{message}; run `rolebundle ingest`"
    return {code: message}


def _named(paths: Sequence[str]) -> str:
    named = first_of([one_line(path, _PATH_CHARS) for path in paths], _MAX_NAMED)
    return f"{counted(len(paths), 'file')} ({named})"
