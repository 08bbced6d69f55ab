"""The files of a bundle's passages."""

from __future__ import annotations

import re

from rolebundle.contracts.bundle import RetrievalBundle

_LINES = re.compile(r":\d+-\d+$")


def paths(bundle: RetrievalBundle) -> list[str]:
    """The file of each passage, each once, best first.

    A path is absolute if whoever asks may know it, or else as in the corpus. A remembered
    fact has no file.
    """
    found = [
        chunk.citation.absolute_path or _LINES.sub("", chunk.citation.locator or "")
        for chunk in bundle.selected
        if chunk.metadata.remembered_from is None
    ]
    return list(dict.fromkeys(filter(None, found)))
