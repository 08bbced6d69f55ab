"""What `connect --write` keeps, so that `connect --undo` can take its change back."""

from typing import Any

from rolebundle.contracts.base import Contract


class HostChange(Contract):
    """A change of a host's configuration file.

    Attributes:
        file: the file, without links.
        server: the name of the entry.
        before: the entry that was there before; missing if there was none.
        entry: the entry that was written.
        removed: the text of the file that was replaced; empty if text was only added.
        added: the text that took its place.
        is_new_file: whether the file was created.
    """

    file: str
    server: str
    before: dict[str, Any] | None = None
    entry: dict[str, Any]
    removed: str
    added: str
    is_new_file: bool
