"""Modules and patterns that are loaded when they are first used, as a short command needs few."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast


class _Lazy:
    """Something that is made when one of its attributes is first used."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._make(), name)
        setattr(self, name, value)
        return value


def lazy_module(name: str) -> Any:
    """A module that is imported when one of its names is first used."""
    return _Lazy(lambda: import_module(name))


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The same as ``re.compile``, but a mistake in the pattern is found when it is first used."""
    return cast("re.Pattern[str]", _Lazy(lambda: re.compile(pattern, flags)))


if TYPE_CHECKING:
    import numpy as numpy  # noqa: PLC0414 - it is exported
    from numpy.typing import NDArray

    Integers = NDArray[numpy.int64]
    Floats = NDArray[numpy.float64]
else:
    numpy = lazy_module("numpy")
    Integers = Floats = Any
