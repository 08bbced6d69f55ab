"""What asks for a sum, and the words of the line that has it. Pure."""

from __future__ import annotations

import re

from rolebundle.resources import data_file

_TABLES = data_file(__file__, "languages.toml")
TOTALS = frozenset(_TABLES["totals"].split())
"""Words of a line with a total."""
_SUM = re.compile("".join(_TABLES["asks_for_sum"]), re.IGNORECASE)


def asks_for_sum(text: str) -> bool:
    """Whether a text asks what something costs, or for a total."""
    return _SUM.search(text) is not None
