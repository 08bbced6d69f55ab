"""What all contracts are: frozen dataclasses at run time, pydantic models where one is needed.

A one-shot `retrieve` has to answer in twice the time that a bare import of its libraries takes,
and building a single pydantic model costs more than that by itself (docs/decisions/0003). So the
contracts are plain dataclasses; pydantic reads them to parse bundles and to write JSON Schemas,
and is imported when that is asked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from pydantic import TypeAdapter


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def plain_value(cls: type[T]) -> type[T]:
    """A plain value: a dataclass that the type checker holds to be frozen.

    The methods that ``@dataclass(frozen=True, slots=True)`` would generate cost a millisecond a
    class at import, and there are more than thirty of them on the way to the first answer.
    """
    return dataclass(eq=False, repr=False, match_args=False)(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def contract(cls: type[T]) -> type[T]:
    """A plain value whose fields are named when it is made."""
    return dataclass(eq=False, repr=False, match_args=False, kw_only=True)(cls)


class Contract:
    """Base of the JSON contracts."""

    # Read by pydantic: what a contract does not name is refused, and no text is taken for a number.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def __repr__(self) -> str:
        named = (f"{name}={item!r}" for name, item in vars(self).items())
        return f"{type(self).__name__}({', '.join(named)})"

    @classmethod
    def model_validate(cls, value: object) -> Self:
        """An instance from plain values, such as ``json.loads`` gives.

        Raises:
            pydantic.ValidationError: they do not fit.
        """
        return cls.model_validate_json(json.dumps(value))

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """An instance from JSON text.

        Raises:
            pydantic.ValidationError: it does not fit.
        """
        validated: Self = _adapter(cast("Any", cls)).validate_json(text)
        return validated

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The contract as JSON Schema."""
        return _adapter(cast("Any", cls)).json_schema()

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """The contract as plain values, ready for JSON."""
        plain: dict[str, Any] = as_plain(self, exclude_none=exclude_none)
        return plain

    def model_dump_json(self, *, exclude_none: bool = False, indent: int | None = None) -> str:
        """The contract as JSON text."""
        return json.dumps(
            as_plain(self, exclude_none=exclude_none),
            ensure_ascii=False,
            indent=indent,
            separators=None if indent else (",", ":"),
        )


def as_plain(value: Any, *, exclude_none: bool = False) -> Any:
    """A value of contracts, containers and scalars, as dicts, lists and JSON scalars."""
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, dict):
        return {key: as_plain(item, exclude_none=exclude_none) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item, exclude_none=exclude_none) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is not part of a contract")
    return {
        name: as_plain(item, exclude_none=exclude_none)
        for name in _field_names(cast("Any", type(value)))
        if not ((item := getattr(value, name)) is None and exclude_none)
    }


@cache
def _field_names(contract: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(contract))


@cache
def _adapter(contract: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(contract)
