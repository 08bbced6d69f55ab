"""Attributes are words of the index and filters, and nothing else."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rolebundle.ingest.metadata import flattened
from support.commands import invoke

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=4), _values, max_size=5))
def test_any_values_become_lines_of_text(values: dict[str, object]) -> None:
    attributes = flattened(values)
    assert list(attributes) == sorted(attributes)
    for key, texts in attributes:
        assert key
        assert ":" not in key
        assert texts
        assert all(text and text == " ".join(text.split()) for text in texts)


def test_they_are_found_by_their_words_in_the_first_passage(tmp_path: Path) -> None:
    front = "---\nproject: Zephyr\nmetadata: {owner: Ana Kim}\nsecret_level: 7\n---\n\n"
    parts = "\n".join(f"## Part {n}\n\n{'Words of a part. ' * 60}\n" for n in range(3))
    (tmp_path / "a.md").write_text(f"{front}# A\n\n{parts}", encoding="utf-8")
    (tmp_path / "b.md").write_text("# B\n\nOther words.\n", encoding="utf-8")
    db = tmp_path / "c.db"
    ingest = ("ingest", tmp_path, "--lexical-only", "--json", "--db", db)
    assert invoke(*ingest).code == 0
    retrieve = ("retrieve", "--lexical-only", "--format", "json", "--db", db)
    [found] = invoke(*retrieve, "zephyr kim").json()["selected"]
    assert found["citation"]["locator"].startswith("a.md:7-")
    narrowed = invoke(*retrieve, "words", "--where", "attributes.project=zephyr").json()
    assert {chunk["title"] for chunk in narrowed["selected"]} == {"A"}
    record = invoke("get", found["document_id"], "--json", "--db", db).json()["document"]
    assert record["attributes"]["metadata.owner"] == ["Ana Kim"]
