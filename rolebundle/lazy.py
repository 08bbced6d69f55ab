"""Modules and patterns that are loaded when they are first used, as a short command needs few."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast


def lazy_module(name: str) -> Any:
    """A module that is imported when one of its names is first used."""
    return _LazyModule(name)


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The same as ``re.compile``, but a mistake in the pattern is found when it is first used."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


class _LazyModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._arguments), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy as numpy  # noqa: PLC0414 - it is exported
else:
    numpy = lazy_module("numpy")
