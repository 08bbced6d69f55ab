"""What the details `ids` and `compact` have of a bundle, and how to fetch the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import create_model

from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.terms import Detail
from rolebundle.resources import data_file

Form = Literal["whole", "text", "sentences", "line", "first", "date", "fields"]
"""How a value is shown: as it is; cut to one, two or half a text; the first texts that fit on a
line; the day; the fields of a request that are not too long."""
_TABLE = data_file(__file__, "compact_bundle.toml")
FIELDS: Mapping[str, Form] = _TABLE["fields"]
"""Path of a field in the bundle → how it is shown. A list's name stands for each of its items."""
COMPACT_ONLY = frozenset(_TABLE["compact_only"])
"""The fields that `ids` does not have."""


def field_tree(detail: Detail) -> Mapping[str, Any]:
    """The fields of one detail as nested mappings, with the path of a field at each leaf."""
    tree: dict[str, Any] = {}
    for path in FIELDS:
        if detail == "compact" or path not in COMPACT_ONLY:
            *names, last = path.split(".")
            branch = tree
            for name in names:
                branch = branch.setdefault(name, {})
            branch[last] = path
    return tree


class More(Contract):
    """How to fetch what is not in the answer.

    Attributes:
        method: the method to call.
        params: its parameters. Those of `retrieve` are of this request, but with detail `full`, and
            the time of this answer, so that the same passages are returned.
        repeat: parameters that are too long to be in ``params``: copy them from this request.
        omitted: how much is not in this answer: ``passages``, ``rejections`` and ``content_chars``.
        notes: what was left out or shortened, in words.
    """

    method: Literal["retrieve", "get"]
    params: dict[str, Any]
    repeat: list[str] | None = None
    omitted: dict[str, int]
    notes: list[str] | None = None


_ADDED: Mapping[str, Any] = {"truncated": bool | None, "content_chars": int | None}
"""Types of fields that the full bundle does not have: whether ``content`` is only a part of the
text, and the length of the whole text in characters. `get` returns it."""


def _projected(full: type[Contract], tree: Mapping[str, Any], **more: Any) -> Any:
    """The contract with those fields of a full contract that the tree names.

    A field is required if the full contract and both details have it.
    """
    fields: dict[str, Any] = {}
    for name, branch in tree.items():
        if name in more or name in _ADDED:
            fields[name] = (_ADDED[name], None) if name in _ADDED else more[name]
            continue
        type_: Any = full.model_fields[name].annotation
        is_required = full.model_fields[name].is_required()
        if isinstance(branch, str):
            is_required = is_required and branch not in COMPACT_ONLY
        else:
            is_list = "list[" in str(type_)
            part = _projected(_contract_in(type_), branch)
            is_required = is_required and any(
                field.is_required() for field in part.model_fields.values()
            )
            type_ = list.__class_getitem__(part) if is_list else part
        fields[name] = (type_, ...) if is_required else (type_ | None, None)
    fields |= {name: value for name, value in more.items() if name not in fields}
    description = f"What `ids` and `compact` have of `{full.__name__}`."
    name = f"Compact{full.__name__.removeprefix('Retrieval')}"
    return create_model(name, __base__=Contract, __doc__=description, **fields)


def _contract_in(annotation: Any) -> type[Contract]:
    """The contract in ``X``, ``X | None``, ``list[X]`` or ``list[X] | None``."""
    while not isinstance(annotation, type) or not issubclass(annotation, Contract):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return annotation


CompactBundle: Any = _projected(
    RetrievalBundle,
    field_tree("compact"),
    detail=(Literal["ids", "compact"], ...),
    more=(More, ...),
    packet=(str | None, None),
)
