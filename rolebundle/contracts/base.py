"""The base of all contracts: strict, closed and frozen pydantic models."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict


class Contract(BaseModel):
    """A JSON document that crosses the boundary, or a part of one.

    Unknown keys are refused, no value is converted to another type, and numbers are finite.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )

    def model_dump_json(  # type: ignore[override]
        self, *, exclude_none: bool = False, indent: int | None = None
    ) -> str:
        """The contract as JSON text, with every float as Python's ``repr`` writes it.

        pydantic's own writer shortens some floats (``1e-05`` to ``1e-5``), so that a bundle that
        is read and written again would be another text with another digest.
        """
        return json.dumps(
            self.model_dump(exclude_none=exclude_none),
            ensure_ascii=False,
            indent=indent,
            separators=None if indent else (",", ":"),
        )
