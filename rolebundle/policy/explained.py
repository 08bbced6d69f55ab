"""The values of an overlay, each with the layer that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from rolebundle.contracts.base import Place, dotted
from rolebundle.contracts.roles import ExplainedValue
from rolebundle.policy.overlays import OWN_KEYS, Layer, ResolvedOverlay

_MISSING = object()


def explained_values(resolved: ResolvedOverlay) -> list[ExplainedValue]:
    """Each value of an overlay after inheritance with its origin, in the order of the format."""
    values = resolved.overlay.model_dump(exclude={"notes"})
    return [_explained(place, value, resolved) for place, value in _values(values, ())]


def _values(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _values(inner, (*place, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, rule in enumerate(value):
            yield (*place, index), {key: part for key, part in rule.items() if part or part == 0}
    else:
        yield place, value


def _explained(place: Place, value: Any, resolved: ResolvedOverlay) -> ExplainedValue:
    shared_by = resolved.rescaled.get(str(place[-1])) if place[0] == "retrieval_policy" else None
    layer = next((layer for layer in resolved.layers if layer.path == shared_by), None)
    if layer is not None:
        return ExplainedValue(
            place=dotted(place), value=value, origin="rescaled", path=str(layer.path)
        )
    keys = [str(step) for step in takewhile(lambda step: isinstance(step, str), place)]
    layer = _layer_of(keys, resolved.layers)
    return ExplainedValue(
        place=dotted(place),
        value=value,
        origin="file" if layer else "default",
        path=str(layer.path) if layer else None,
        notes=_notes_on(dotted(place), layer.values.get("notes")) if layer else {},
    )


def _layer_of(keys: Sequence[str], layers: Sequence[Layer]) -> Layer | None:
    """The file that gives the value of a key, or ``None`` if it is the default."""
    for layer in layers[:1] if keys[0] in OWN_KEYS else layers:
        value: object = layer.values
        for key in keys:
            value = value.get(key, _MISSING) if isinstance(value, Mapping) else _MISSING
            if value is None:
                return None  # It removes what the files that it extends give.
        if value is not _MISSING:
            return layer
    return None


def _notes_on(place: str, notes: object) -> dict[str, str]:
    if not isinstance(notes, dict):
        return {}
    inside = (f"{place}.", f"{place}[")
    return {key: note for key, note in notes.items() if key == place or key.startswith(inside)}
