"""Constraints on contract fields, read by `contracts.check` and by pydantic alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import Any


@dataclass(frozen=True, slots=True)
class Range:
    """A number within bounds, and finite."""

    least: float | None = None
    above: float | None = None
    most: float | None = None

    def flaw(self, value: Any) -> str:
        """What is wrong with a number, or an empty text."""
        if not isfinite(value):
            return "must be a finite number"
        if self.least is not None and value < self.least:
            return f"must be {self.least:g} or more"
        if self.above is not None and value <= self.above:
            return f"must be more than {self.above:g}"
        if self.most is not None and value > self.most:
            return f"must be {self.most:g} or less"
        return ""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        bounds = {"ge": self.least, "gt": self.above, "le": self.most}
        schema.update({name: bound for name, bound in bounds.items() if bound is not None})
        if schema["type"] == "float":
            schema["allow_inf_nan"] = False
        return schema


@dataclass(frozen=True, slots=True)
class Text:
    """A text of bounded length that is not blank, and fits a pattern where there is one."""

    most: int
    pattern: str = ""

    def flaw(self, value: str) -> str:
        """What is wrong with a text, or an empty text."""
        if not value.strip():
            return "must not be blank"
        if not value.isascii() and any("\ud800" <= one <= "\udfff" for one in value):
            return "must be Unicode text, without half characters"
        if len(value) > self.most:
            return f"must have {self.most} characters or less"
        if self.pattern and not re.fullmatch(self.pattern, value):
            return f"must match {self.pattern}"
        return ""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        # \S: not blank. A pattern of ours leaves no room for a blank text either.
        schema.update(max_length=self.most, pattern=self.pattern or r"\S")
        return schema
