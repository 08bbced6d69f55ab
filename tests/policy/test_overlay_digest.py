"""The digest of an overlay: what it means, not how it is written."""

from pathlib import Path

from rolebundle.contracts.overlay import Overlay
from rolebundle.policy.overlays import digest_of, load_file, load_role, overlay_folders, validate
from support.overlay_files import write


def test_the_digest_makes_defaults_explicit(tmp_path: Path) -> None:
    short = write(tmp_path, "a", name="short")
    long = write(tmp_path, "a", name="long", label="", retrieval_policy={"max_selected_chunks": 10})
    assert load_file(short, []).digest == load_file(long, []).digest


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
