import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import DocumentError
from rolebundle.ingest.front_matter import read_front_matter


def read(text):
    return read_front_matter(text.split("\n"), "docs/a.md")


def refused(text):
    with pytest.raises(DocumentError) as caught:
        read(text)
    assert caught.value.code == "bad_front_matter"
    return caught.value.message


def test_yaml_values_and_their_types():
    front = read(
        "---\ntitle: A: plain title\ntags: [a, on, no]\ndate: 2026-03-01\n"
        "at: 2026-03-01T10:00:00Z\nlanguage: no\nweight: 3\nratio: 0.5\ndraft: true\n"
        "none: ~\n---\nbody".replace("A: plain", "A plain")
    )
    assert front is not None
    assert front.declared == {
        "title": "A plain title",
        "tags": ["a", "on", "no"],
        "date": "2026-03-01",
        "at": "2026-03-01T10:00:00+00:00",
        "language": "no",
        "weight": 3,
        "ratio": 0.5,
        "draft": True,
        "none": None,
    }
    assert (front.declared_at, front.body_index) == (2, 11)


def test_toml_values_and_their_types():
    front = read('+++\ntitle = "T"\ndate = 2026-03-01\n[extra]\nx = [1, 2]\n+++\n')
    assert front is not None
    assert front.declared == {"title": "T", "date": "2026-03-01", "extra": {"x": [1, 2]}}


@pytest.mark.parametrize(
    "text", ["", "text", "---\nno end\n\ntext", "----\na: b\n----", " ---\n---"]
)
def test_text_without_fences_is_not_front_matter(text):
    assert read(text) is None


def test_empty_front_matter_declares_nothing():
    front = read("---\n---\ntext")
    assert front is not None
    assert front.declared == {}
    assert front.body_index == 2


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("---\na: 1\na: 2\n---", "docs/a.md:3", "duplicate key 'a'"),
        ("---\na: {b: 1, b: 2}\n---", "docs/a.md:2", "duplicate key 'b'"),
        ("---\na: &x 1\nb: *x\n---", "docs/a.md:2", "anchors"),
        ("---\na: !!python/object:os.system x\n---", "docs/a.md:2", "tag"),
        ("---\na: !t x\n---", "docs/a.md:2", "tag"),
        ("---\n- a\n- b\n---", "docs/a.md:2", "not a mapping"),
        ("---\njust words\n---", "docs/a.md:2", "not a mapping"),
        ("---\nok: 1\na: [1\n---", "docs/a.md:", "expected"),
        ("---\n? [a]\n: b\n---", "docs/a.md:2", "key"),
        ("---\na: 2026-02-31\n---", "docs/a.md:2", ""),
        ("---\na: " + "x" * 70_000 + "\n---", "docs/a.md:2", "64 KiB"),
        ("---\na: " + "[" * 50 + "]" * 50 + "\n---", "docs/a.md:2", "levels"),
        ("+++\na = 1\na = 2\n+++", "docs/a.md:3", "TOML"),
        ("+++\na = " + "[" * 5000 + "\n+++", "docs/a.md:", "TOML"),
    ],
)
def test_invalid_front_matter_is_an_error_with_its_line(text, place, reason):
    message = refused(text)
    assert place in message
    assert reason in message


def test_an_alias_bomb_is_rejected_before_it_expands():
    levels = "\n".join(f"k{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))
    assert "anchors" in refused(f"---\nk0: &a0 x\n{levels}\n---")


def test_merge_keys_have_no_effect():
    front = read("---\n<<: {a: 1}\n---")
    assert front is not None
    assert front.declared == {"<<": {"a": 1}}


@given(st.text(), st.sampled_from(["---", "+++"]))
def test_any_text_is_read_or_raises(text, fence):
    try:
        front = read(f"{fence}\n{text}\n{fence}\nbody")
    except DocumentError as error:
        assert error.code == "bad_front_matter"
        return
    assert front is not None
    assert all(isinstance(key, str) for key in front.declared)


@given(
    st.text(alphabet="ab:-[]{}&*!|>?'\"#%@,\n 0123456789.<~\\x"), st.sampled_from(["---", "+++"])
)
def test_any_yaml_markup_is_read_or_raises(text, fence):
    try:
        read(f"{fence}\n{text}\n{fence}\nbody")
    except DocumentError as error:
        assert error.code == "bad_front_matter"
