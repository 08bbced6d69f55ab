"""The sentences of a text, and the words that it is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

MIN_CHARS, MAX_CHARS = 15, 400
# Where sentences end: after a full stop, at a semicolon, at a blank line, before an item of a list
# or a heading.
END = re.compile(
    r"(?<=[.!?])[\"')\]”’]*\s+(?=[^\sa-z])|(?<=;)\s+|\n\s*\n\s*|\n(?=\s*(?:[-*•+|#>]|\d+[.)])\s)"
)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKER = re.compile(r"\s*(?:[-*•+>]+|\d+[.)])\s+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, each on one line; without tables, headings and source code."""
    for part in END.split(_CODE.sub("\n\n", text)):
        line = _MARKER.sub("", " ".join(part.split()), count=1).replace("`", "").replace("*", "")
        if MIN_CHARS <= len(line) <= MAX_CHARS and line[0] not in "#|":
            yield line
