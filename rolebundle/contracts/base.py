"""The base of all contracts: strict, closed and frozen pydantic models; text that JSON can hold."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, create_model


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


def list_of(items: type[Contract], key: str, name: str, description: str) -> Any:
    """A contract, called ``name``, with nothing but a list under one key."""
    fields: dict[str, Any] = {key: (list[items], ...)}  # type: ignore[valid-type]
    return create_model(name, __base__=Contract, __doc__=description, **fields)
