"""The values of an overlay file: merged with those that it extends, and validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.mistakes import Place, keys_at, mistakes_in
from rolebundle.contracts.overlay import (
    WEIGHT_TOLERANCE,
    WEIGHTS,
    Overlay,
    RetrievalPolicy,
    weights_reason,
)
from rolebundle.policy.policy_json import Problem, Values, problem_of

OWN_KEYS = ("$schema", "role_id", "version", "extends", "notes")
"""The keys that a child never inherits."""

WEIGHTS_PLACE = "retrieval_policy"
_NULL_HINT = (
    "leave the key out; null only removes what the overlay named by `extends` declares under "
    "the same name"
)


def merge(parent: Mapping[str, object], child: Mapping[str, object]) -> Values:
    """Merge an overlay into the one that it extends. Both are the values of their files.

    This is JSON Merge Patch (RFC 7396): objects are merged key by key, other values replace, and
    null removes the parent's key. There is one exception: null is kept for a key that is neither in
    the parent nor in the format, so that validation reports the key.
    """
    inherited = {key: value for key, value in parent.items() if key not in OWN_KEYS}
    return _merged(inherited, child, ())


def given_weights(values: Mapping[str, object]) -> list[str]:
    """Return the names of the weights that the values of a file give."""
    policy = values.get("retrieval_policy")
    return [name for name in WEIGHTS if isinstance(policy, dict) and policy.get(name) is not None]


def share_weights(
    values: Values, own: Mapping[str, object]
) -> tuple[Values, tuple[str, ...], list[Problem]]:
    """Let the weights that a file leaves out share what it leaves of 1.

    If it gives one to three weights, the others keep their proportions, which are those of the
    inherited or default values. Weights that sum to 1 as they are stay as they are.

    Args:
        values: the values after inheritance.
        own: the values of the file.

    Returns:
        The values, the names of the weights that were changed, and what is wrong with the weights.
    """
    policy = values.get("retrieval_policy")
    if not isinstance(policy, dict):
        return values, (), []
    fields = RetrievalPolicy.model_fields
    weights = {name: policy.get(name, fields[name].default) for name in WEIGHTS}
    if not all(_is_fraction(weight) for weight in weights.values()):
        return values, (), []  # The contract reports it.
    total = sum(weights.values())
    if abs(total - 1) <= WEIGHT_TOLERANCE:
        return values, (), []
    own_weights = given_weights(own)
    missing = [name for name in WEIGHTS if name not in own_weights]
    if not own_weights or not missing:
        problem = _weights_problem(f"{' + '.join(WEIGHTS)} {weights_reason(total)}")
        return values, (), [problem]
    remaining = 1 - sum(weights[name] for name in own_weights)
    base = sum(weights[name] for name in missing)
    if remaining < -1e-9:
        problem = _weights_problem(
            f"{' + '.join(own_weights)} is {1 - remaining:.4g}, which is more than 1"
        )
        return values, (), [problem]
    if not base:
        problem = _weights_problem(
            f"{' + '.join(own_weights)} is {1 - remaining:.4g}, and the others are 0, so that they "
            "cannot share the rest of 1"
        )
        return values, (), [problem]
    # Rounded, so that the values can be read.
    shared = {name: round(max(0.0, remaining) * weights[name] / base, 6) for name in missing}
    return {**values, "retrieval_policy": {**policy, **shared}}, tuple(missing), []


def _is_fraction(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _weights_problem(message: str) -> Problem:
    return Problem(WEIGHTS_PLACE, "bad_value", message, "correct the values")


def without_nulls(value: object) -> Any:
    """The values of a file without the keys that remove something of a parent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


def validate(values: Values) -> Overlay | list[Problem]:
    """Return the overlay, or all violations of the contract."""
    try:
        return Overlay.model_validate(values)
    except ValidationError as error:
        return [
            problem_of(mistake, null_hint=_NULL_HINT) for mistake in mistakes_in(error, Overlay)
        ]


def _merged(parent: Mapping[str, object], child: Mapping[str, object], place: Place) -> Values:
    merged = dict(parent)
    for key, value in child.items():
        if isinstance(value, dict):
            below = parent.get(key)
            merged[key] = _merged(below if isinstance(below, dict) else {}, value, (*place, key))
        elif value is not None:
            merged[key] = value
        elif key in parent:
            del merged[key]
        elif key not in keys_at(Overlay, place):
            merged[key] = None
    return merged
