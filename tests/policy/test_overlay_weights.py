"""Weights that a file leaves out share what the given ones leave of 1."""

from pathlib import Path

import pytest

from rolebundle.contracts.overlay import WEIGHTS
from rolebundle.policy.overlays import ResolvedOverlay, load_file
from support.overlay_files import refused, write

DEFAULTS = {
    "lexical_weight": 0.36,
    "semantic_weight": 0.24,
    "metadata_weight": 0.2,
    "rerank_weight": 0.2,
}


def weights_of(resolved: ResolvedOverlay) -> list[float]:
    return [getattr(resolved.overlay.retrieval_policy, name) for name in WEIGHTS]


def loaded(folder: Path, **policy: float | None) -> ResolvedOverlay:
    return load_file(write(folder, "a", retrieval_policy=policy), [folder])


@pytest.mark.parametrize(
    "own_weights",
    [
        {},
        {"lexical_weight": 0.4, "semantic_weight": 0.2},
        {"lexical_weight": 0.365},
        {**DEFAULTS, "lexical_weight": 0.369},
    ],
)
def test_weights_that_sum_to_one_stay_as_they_are(
    tmp_path: Path, own_weights: dict[str, float]
) -> None:
    found = loaded(tmp_path, **own_weights)
    assert weights_of(found) == [*(DEFAULTS | own_weights).values()]


@pytest.mark.parametrize(
    ("own_weights", "reason"),
    [
        ({**DEFAULTS, "lexical_weight": 0.5}, "must be 1 ± 0.01, and is 1.14"),
        ({"lexical_weight": 0.9, "semantic_weight": 0.2}, "must be 1 ± 0.01, and is 1.5"),
        ({"lexical_weight": 0.1, "semantic_weight": 0.0}, None),
    ],
)
def test_what_cannot_be_shared_is_an_error(
    tmp_path: Path, own_weights: dict[str, float], reason: str | None
) -> None:
    path = write(tmp_path, "a", retrieval_policy=own_weights)
    if reason is None:
        load_file(path, [])
    else:
        assert reason in refused("overlay_malformed", path).message


def test_weights_of_zero_cannot_take_the_rest(tmp_path: Path) -> None:
    write(tmp_path, "base", retrieval_policy=dict(zip(WEIGHTS, (1, 0, 0, 0), strict=True)))
    child = write(tmp_path, "child", extends="base", retrieval_policy={"lexical_weight": 0.8})
    assert "must be 1 ± 0.01, and is 0.8" in refused("overlay_malformed", child).message


def test_a_child_keeps_its_own_weights_and_rescales_those_of_its_parents(tmp_path: Path) -> None:
    write(tmp_path, "base", retrieval_policy={"lexical_weight": 0.56, "rerank_weight": 0.0})
    base = load_file(tmp_path / "base.json", [tmp_path])
    assert weights_of(base) == [0.56, 0.24, 0.2, 0]
    child = write(tmp_path, "child", extends="base", retrieval_policy={"semantic_weight": 0.62})
    assert weights_of(load_file(child, [tmp_path])) == [0.28, 0.62, 0.1, 0]
