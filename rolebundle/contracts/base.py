"""What all contracts share: strict models, times as ISO 8601 in UTC, similar names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from rolebundle.resources import data_file

Values = TypeVar("Values", list[Any], tuple[Any, ...])


def writable(text: str) -> str:
    """The text with unpaired surrogates as escapes, which are also JSON's.

    A file's name may hold bytes that are not valid text. They cannot be written as UTF-8.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Contract(BaseModel):
    """A JSON document that is exchanged with callers or stored in a file, or a part of one.

    Unknown keys are an error and numbers must be finite. A value of another type is an error, not
    converted, except in fields whose type has its own validator.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )

    def model_dump_json(  # type: ignore[override]
        self, *, exclude_none: bool = False, indent: int | None = None
    ) -> str:
        """Return the contract as JSON text. Floats are written as by Python's ``repr``.

        pydantic's own writer shortens some floats (``1e-05`` to ``1e-5``). A bundle that is read
        and written again would then have another text and another digest.
        """
        return json.dumps(
            self.model_dump(exclude_none=exclude_none),
            ensure_ascii=False,
            indent=indent,
            separators=None if indent else (",", ":"),
        )


def attributes_of(row: object, *names: str) -> dict[str, Any]:
    """The fields of a row that a contract has under the same names."""
    return {name: getattr(row, name) for name in names}


def list_of(items: type[Contract], key: str, name: str, description: str) -> Any:
    """A contract, called ``name``, with nothing but a list under one key."""
    fields: dict[str, Any] = {key: (list[items], ...)}  # type: ignore[valid-type]
    return create_model(name, __base__=Contract, __doc__=description, **fields)


def without_repeats(values: Values) -> Values:
    """A list or tuple with each value once, in order."""
    return type(values)(dict.fromkeys(values))


def required(description: str) -> Any:
    """A field that must be given."""
    return Field(description=description)


def optional(description: str, default: Any = None) -> Any:
    """A field that may be left out."""
    return Field(default, description=description)


_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%a, %d %b %Y",
)  # fmt: skip
_TIMES = (" %H:%M", " %H:%M:%S", " %H:%M:%S %z", " %H:%M %z")
_UTC_SUFFIX = re.compile(r" (?:GMT|UTC|Z)$")
_SECONDS = re.compile(r"\d{10}(?:\d{3})?", re.ASCII)
_MAX_CHARS = 100


def moment_of(text: str) -> date | datetime | None:
    """The day or time that a text is, if no other one can be meant.

    ISO 8601, ``2024-5-3``, ``2024/05/03 10:00 +0200``, ``3 May 2024``, ``May 3, 2024``,
    ``Fri, 03 May 2024 10:00:00 GMT``, and seconds or milliseconds since 1970. Not ``03/05/2024``,
    which may be in March or in May. A time without a zone is in UTC.
    """
    text = " ".join(text.split())
    if len(text) > _MAX_CHARS:
        return None
    if _SECONDS.fullmatch(text):
        return datetime.fromtimestamp(int(text[:10]), UTC)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(text)
        return moment.date() if len(text) <= len("2024-05-03") else zoned(moment)
    text = _UTC_SUFFIX.sub(" +0000", text)
    for day in _DAYS:
        with suppress(ValueError, OverflowError):
            return datetime.strptime(text, day).date()
        for time in _TIMES:
            with suppress(ValueError, OverflowError):
                return zoned(datetime.strptime(text, f"{day}{time}"))
    return None


def zoned(moment: datetime) -> datetime:
    """The time with its zone: UTC if it has none, whatever the machine."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Place = tuple[str | int, ...]
MistakeKind = Literal["unknown", "missing", "value", "object"]


class Mistake(NamedTuple):
    """One mistake in a JSON document.

    Attributes:
        place: the keys and list indexes that lead to the mistake.
        kind: ``unknown`` or ``missing`` for a key, ``value`` for one value, ``object`` for several
            values of one object together.
        message: the reason, as the end of a sentence that begins with the place.
        value: the wrong value; ``None`` if a key is missing.
        allowed: the allowed keys or values, if they can be listed.
    """

    place: Place
    kind: MistakeKind
    message: str
    value: object = None
    allowed: tuple[str, ...] = ()

    @property
    def guess(self) -> str:
        """For an unknown key a question with the allowed one that is most similar, else empty."""
        return did_you_mean(str(self.place[-1]), self.allowed) if self.kind == "unknown" else ""


def dotted(place: Place) -> str:
    """A place as text, such as ``vocabulary.synonyms[2]``, in at most 200 characters."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    # A key may be as long as the file.
    return writable(text if len(text) <= 200 else f"{text[:199]}…")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the known name that is most similar; empty if none is similar."""
    near = get_close_matches(name[:200], list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def mistakes_in(error: ValidationError, contract: type[BaseModel]) -> list[Mistake]:
    """Return all mistakes in pydantic's error.

    Unknown keys come first, because a misspelt key is often the reason why another is missing.
    """
    mistakes = [_mistake(details, contract) for details in error.errors(include_url=False)]
    return sorted(mistakes, key=lambda mistake: mistake.kind != "unknown")


def first_mistake(
    error: ValidationError, contract: type[BaseModel], document: Any, items: str, item: str
) -> tuple[str, str]:
    """The first mistake of a document that has a list of objects, most with an ``id``.

    Args:
        error: pydantic's.
        contract: of the document.
        document: its values.
        items: the key of the list, such as ``questions``.
        item: what one of them is called, such as ``question``.

    Returns:
        The mistake as one line with the number of others, and what is allowed instead; empty if
        that cannot be listed.
    """
    first, *more = mistakes_in(error, contract)
    prefix, place = "", first.place
    if len(place) > 1 and place[0] == items and isinstance(place[1], int):
        value = document[items][place[1]]
        name = value.get("id") if isinstance(value, Mapping) else None
        prefix, place = f"{item} {str(name)[:80] if name else place[1] + 1}: ", place[2:]
    key = f"{dotted(place)}: " if place else ""
    others = f" (and {len(more)} more)" if more else ""
    allowed = f"allowed here: {', '.join(first.allowed)}" if first.allowed else ""
    return f"{prefix}{key}{first.message}{first.guess}{others}", allowed


def keys_at(contract: type[BaseModel], place: Place) -> tuple[str, ...]:
    """Return the keys of a contract at a place. Empty if any key is allowed there."""
    kind: Any = contract
    for step in place:
        if isinstance(step, int):
            continue
        if get_origin(kind) is dict:
            kind = get_args(kind)[1]
        else:
            field = _fields(kind).get(step)
            kind = field.annotation if field else None
        while get_args(kind) and get_origin(kind) is not dict:
            kind = next(part for part in get_args(kind) if part is not type(None))
    return tuple(field.alias or name for name, field in _fields(kind).items())


def _fields(kind: Any) -> dict[str, FieldInfo]:
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _mistake(details: Any, contract: type[BaseModel]) -> Mistake:
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    # If a dictionary's key is wrong, and not its value, pydantic adds the step "[key]".
    place = tuple(step for step in details["loc"] if step != "[key]")
    names = re.findall(r"'[^']*'", context["expected"]) if kind == "literal_error" else []
    is_blank = context.get("pattern") == r"\S"
    row = "string_too_short" if is_blank else kind
    message: str = data_file(__file__, "mistakes.toml").get(row, "is not valid: {msg}")
    text = message.format(**context, msg=details["msg"], allowed=", ".join(names))
    if kind == "missing":
        return Mistake(place, "missing", text)
    if kind == "extra_forbidden":
        return Mistake(place, "unknown", text, value, keys_at(contract, place[:-1]))
    if kind == "value_error" and isinstance(value, Mapping):
        return Mistake(place, "object", text, value)
    return Mistake(place, "value", text, value, tuple(name.strip("'") for name in names))
