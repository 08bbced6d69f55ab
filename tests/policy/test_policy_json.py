"""What an overlay file may contain, and how it is merged with what it extends."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolebundle.errors import OverlayError
from rolebundle.policy.overlays import ResolvedOverlay, load_file, problems_of
from rolebundle.policy.policy_file import MAX_BYTES
from support.overlay_files import refused

MINIMAL = '"version": "1.0", "role_id": "a"'


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line 1, column 1", "is not JSON"),
        ('{"version": "1.0",\n "role_id": }', "line 2, column 13", "is not JSON"),
        ("[]", "", "must be one JSON object"),
        (f'{{{MINIMAL}, "role_id": "b"}}', "line 1, column 36", "the key 'role_id' occurs twice"),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": NaN}}}}',
            "line 1, column 70",
            "NaN is not a JSON number",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"min_score": 1e999}}}}',
            "line 1, column 70",
            "out of range",
        ),
        (
            f'{{{MINIMAL}, "retrieval_policy": {{"max_selected_chunks": {"9" * 5000}}}}}',
            "line 1, column 80",
            "more than 400 digits",
        ),
        (f'{{{MINIMAL}, "anti_goals": ["\\ud800"]}}', "anti_goals[0]", "an unpaired surrogate"),
        (f'{{{MINIMAL}, "mission": "a\\u0000b"}}', "mission", r"\u0000"),
        ("[" * 100_000, "line 1, column 101", "nested more than 100 levels deep"),
        (
            f'{{{MINIMAL}, "retrieval_polcy": {{}}}}',
            "retrieval_polcy",
            "unknown key; did you mean retrieval_policy?",
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


# Any content whatever


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
