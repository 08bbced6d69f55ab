"""What an overlay file may contain, and how it is merged with what it extends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.contracts.overlay import Overlay
from rolebundle.errors import OverlayError
from rolebundle.policy.overlays import ResolvedOverlay, load_file, merge, problems_of
from rolebundle.policy.policy_json import MAX_BYTES
from support.overlay_files import overlays, refused

MINIMAL = '"version": "1.0", "role_id": "a"'


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1, column 1", "is not JSON"),
        ('{"version": "1.0",\n "role_id": }', "line 2, column 13", "is not JSON"),
        ("{} {}", "line 1, column 4", "is not JSON"),
        ("[]", "", "must be one JSON object"),
        (f'{{{MINIMAL}, "role_id": "b"}}', "line 1, column 36", "the key 'role_id' occurs twice"),
        (
            f'{{{MINIMAL}, "source_policy": {{"forbidden_sources": [], "forbidden_sources": []}}}}',
            "line 1, column 79",
            "the key 'forbidden_sources' occurs twice",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": NaN}}}}',
            "line 1, column 70",
            "NaN is not a JSON number",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": 1e999}}}}',
            "",
            "out of range",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"max_selected_chunks": {"9" * 5000}}}}}',
            "line 1, column 80",
            "more than 18 digits",
        ),
        (f'{{{MINIMAL}, "anti_goals": ["\\ud800"]}}', "anti_goals[0]", "an unpaired surrogate"),
        (f'{{{MINIMAL}, "mission": "a\\u0000b"}}', "mission", r"\u0000"),
        ("[" * 100_000, "line 1, column 101", "nested more than 100 levels deep"),
        ('{"x":' * 101 + "1" + "}" * 101, "line 1, column 501", "nested more than 100 levels deep"),
        (
            f'{{{MINIMAL}, "retrieval_polcy": {{}}}}',
            "retrieval_polcy",
            "unknown key; did you mean retrieval_policy?",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"lexical_weight": 0.9, "rerank_weight": 0.2}}}}',
            "retrieval_policy",
            "lexical_weight + rerank_weight is 1.1, which is more than 1",
        ),
        (f'{{{MINIMAL}, "vocabulary": {{"boost_phrases": ["x", 1]}}}}', "vocabulary.boost_phrases[1]", "(it is 1)"),
        (f'{{{MINIMAL}, "extends": "../a"}}', "extends", "must match"),
        ('{"role_id": "a"}', "version", "is missing"),
    ],
)  # fmt: skip
def test_a_malformed_overlay_is_refused_with_its_place(
    tmp_path: Path, text: str, place: str, reason: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    error = refused("overlay_malformed", path)
    assert error.message.startswith(f"{path}: {place}: " if place else f"{path}: ")
    assert reason in error.message
    first = problems_of(path, [])[0]
    assert (first.place, reason in first.message) == (place, True)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"role_id": "\xff"}', "is not UTF-8 at byte 13"),
        ('{"version": "1.0", "role_id": "a"}'.encode("utf-16"), "is not UTF-8 at byte 0"),
        (b" " * (MAX_BYTES + 1), "is longer than 1024 KiB"),
        (b'{"a": 1, \xef\xbb\xbf"b": 2}', "is not JSON"),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    assert reason in refused("overlay_malformed", path).message


@given(overlays, overlays)
def test_merge_the_child_wins_and_the_rest_is_the_parents(
    parent: dict[str, object], child: dict[str, object]
) -> None:
    merged = merge(parent, child)
    assert follows(merged, parent, child, own=("role_id", "version", "extends"))


def follows(merged: object, parent: object, child: object, own: tuple[str, ...] = ()) -> bool:
    if not isinstance(child, dict):
        return merged == child
    assert isinstance(merged, dict)
    below = parent if isinstance(parent, dict) else {}
    inherited = {key: value for key, value in below.items() if key not in child and key not in own}
    return (
        all(merged[key] == value for key, value in inherited.items())
        and all(
            key not in merged if value is None else follows(merged[key], below.get(key), value)
            for key, value in child.items()
        )
        and merged.keys() <= inherited.keys() | child.keys()
    )


# Any content whatever

# st.text() leaves lone surrogates out, and JSON can spell them.
ROLE_KEYS = list(Overlay.model_fields)
wild_text = st.text(st.characters(), max_size=8)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | wild_text
names = st.sampled_from([*ROLE_KEYS, "pattern", "boost", "lexical_weight"]) | wild_text
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)
)
objects = st.dictionaries(names, anything, max_size=6)
near_misses = objects.map(lambda keys: {"version": "1.0", "role_id": "a", **keys})


def loads_or_is_refused(path: Path) -> None:
    try:
        assert isinstance(load_file(path, []), ResolvedOverlay)
        assert problems_of(path, []) == []
    except OverlayError as error:
        assert str(error).encode("utf-8")
        assert problems_of(path, [])


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b'{"a":' * 10_000)
def test_any_bytes_give_an_overlay_or_an_overlay_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    loads_or_is_refused(path)


@given(anything | objects | near_misses, st.booleans())
def test_any_json_gives_an_overlay_or_an_overlay_error(
    tmp_path: Path, value: object, escaped: bool
) -> None:
    path = tmp_path / "a.json"
    text = json.dumps(value, ensure_ascii=escaped)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    loads_or_is_refused(path)
