"""What became of the files of a contract since its start. Pure."""

from __future__ import annotations

from typing import NamedTuple

from rolebundle.contracts.gate import Baseline, FileState


class Change(NamedTuple):
    """What became of a file that is there.

    Attributes:
        is_work: whether it is new, or changed in substance.
        is_touched: whether it is new, or any byte of it.
        copy_of: another file of the start that it equals; empty if it is no copy.
        note: the change in words.
    """

    is_work: bool
    is_touched: bool
    copy_of: str
    note: str


class Comparison:
    """Compares files with the baseline."""

    def __init__(self, baseline: Baseline) -> None:
        self.before = {file.path: file for file in baseline.files}
        self._all = [*baseline.files, *baseline.others]

    def recorded(self, state: FileState) -> str:
        """A file that had this content at the start, maybe this file; empty if there is none."""
        return next((f.path for f in self._all if f.substance == state.substance != ""), "")

    def change(self, state: FileState) -> Change:
        """What became of a file."""
        before = self.before.get(state.path)
        is_touched = before is None or before.sha256 != state.sha256
        if before is not None and before.substance == state.substance:
            note = "rewritten, but not changed" if is_touched else "not changed"
            return Change(False, is_touched, "", f"{note} since the start")
        others = (f.path for f in self._all if f.body == state.body != "" and f.path != state.path)
        if original := next(others, ""):
            return Change(False, True, original, f"not changed: equals {original} of the start")
        return Change(True, True, "", "changed" if before else "new")
