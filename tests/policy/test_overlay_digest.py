"""The digest of an overlay: what it means, not how it is written."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.policy.overlays import digest_of, load_file, load_role, overlay_folders, validate
from support.amounts import few_examples
from support.overlay_files import overlays, write


def shuffled(value: object, random: Random) -> object:
    if isinstance(value, dict):
        keys = random.sample(list(value), len(value))
        return {key: shuffled(value[key], random) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, random) for item in value]
    return value


# A seed is drawn, and not each permutation, which takes a hundred times as long.
@few_examples
@given(overlays, st.integers(0, 2**32), st.sampled_from([None, 1, "\t"]))
def test_the_digest_knows_no_layout(
    tmp_path: Path, values: dict[str, object], seed: int, indent: int | str | None
) -> None:
    plain, reformatted = tmp_path / "plain.json", tmp_path / "other.json"
    plain.write_text(json.dumps(values), encoding="utf-8")
    text = json.dumps(shuffled(values, Random(seed)), indent=indent, ensure_ascii=False)
    reformatted.write_text(text, encoding="utf-8")
    assert load_file(plain, []).digest == load_file(reformatted, []).digest


def test_the_digest_makes_defaults_explicit(tmp_path: Path) -> None:
    short = write(tmp_path, "a", name="short")
    long = write(tmp_path, "a", name="long", label="", retrieval_policy={"max_selected_chunks": 10})
    assert load_file(short, []).digest == load_file(long, []).digest


@given(overlays, overlays)
def test_the_digest_is_equal_for_equal_overlays_only(
    first_values: dict[str, object], second_values: dict[str, object]
) -> None:
    first, second = validate(first_values), validate(second_values)
    assert isinstance(first, Overlay)
    assert isinstance(second, Overlay)
    assert (digest_of(first) == digest_of(second)) == (first == second)


def changed(value: object) -> list[object]:
    """The value with each of its leaves changed in turn, so far as the model allows it."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 0.001 if isinstance(value, float) else value + 1]
    if isinstance(value, str):
        return [value + "x"]
    if isinstance(value, list):
        inside = [
            [*value[:n], new, *value[n + 1 :]] for n, v in enumerate(value) for new in changed(v)
        ]
        return [*inside, *([list(reversed(value))] if value != value[::-1] else []), value[:-1]]  # fmt: skip
    if isinstance(value, dict):
        return [{**value, key: new} for key, v in value.items() for new in changed(v)]
    return []


def test_the_digest_changes_with_any_value() -> None:
    overlay = load_role("mossline-code-reviewer", overlay_folders()).overlay
    values = overlay.model_dump()
    results = [validate(new) for new in changed(values) if isinstance(new, dict)]
    valid = [result for result in results if isinstance(result, Overlay) and result != overlay]
    # Only the closed vocabularies have no neighbour that is valid.
    assert len(results) - len(valid) <= 6
    assert len(valid) > 100
    assert digest_of(overlay) not in {digest_of(variant) for variant in valid}
