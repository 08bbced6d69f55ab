"""The digest of an overlay: what it means, not how it is written."""

from pathlib import Path

import pytest

from rolebundle.policy.overlays import load_file
from support.overlay_files import write


def test_the_digest_makes_defaults_explicit(tmp_path: Path) -> None:
    short = write(tmp_path, "a", name="short")
    long = write(tmp_path, "a", name="long", label="", retrieval_policy={"max_selected_chunks": 10})
    assert load_file(short, []).digest == load_file(long, []).digest


@pytest.mark.parametrize(
    "change",
    [
        {"mission": "Write."},
        {"vocabulary": {"boost_phrases": ["two", "one"]}},
        {"source_policy": {"domain_boosts": {"law": 2.001}}},
        {"source_policy": {"forbidden_sources": [{"path": "a/**"}]}},
        {"retrieval_policy": {"diversity": "hard"}},
        {"retrieval_policy": {"evidence": "required"}},
    ],
)
def test_the_digest_changes_with_any_value(tmp_path: Path, change: dict[str, object]) -> None:
    values = {
        "mission": "Read.",
        "vocabulary": {"boost_phrases": ["one", "two"]},
        "source_policy": {"domain_boosts": {"law": 2}, "forbidden_sources": [{"pattern": "a"}]},
    }
    digests = {
        load_file(write(tmp_path, "a", **each), []).digest for each in (values, values | change)
    }
    assert len(digests) == 2
