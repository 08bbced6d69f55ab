import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import DocumentError
from rolebundle.ingest.front_matter import read_front_matter
from support.amounts import linear_time


def read(text):
    return read_front_matter(text.split("\n"), "docs/a.md")


def refused(text):
    with pytest.raises(DocumentError) as caught:
        read(text)
    assert caught.value.code == "bad_front_matter"
    return caught.value.message


def declared(text):
    front = read(text)
    assert front is not None
    return front.declared, front.notes


def test_yaml_scalars_are_texts_as_they_were_written():
    front = read(
        "---\ntitle: A plain title\ntags: [a, on, no]\ndate: 2026-03-01 10:00\nlanguage: no\n"
        "version: 1.10\nid: 007\ndraft: true\nnone: ~\nempty:\nquoted: 'null'\n---\nbody"
    )
    assert front is not None
    assert front.declared == {
        "title": "A plain title",
        "tags": ["a", "on", "no"],
        "date": "2026-03-01 10:00",
        "language": "no",
        "version": "1.10",
        "id": "007",
        "draft": "true",
        "none": None,
        "empty": None,
        "quoted": "null",
    }
    assert (front.declared_at, front.body_index, front.notes) == (2, 12, ())


def test_toml_scalars_are_texts():
    values, _ = declared(
        '+++\ntitle = "T"\ndate = 2026-03-01\nratio = 1.10\ndraft = true\n[extra]\nx = [1, 2]\n+++\n'
    )
    assert values == {
        "title": "T",
        "date": "2026-03-01",
        "ratio": "1.10",
        "draft": "true",
        "extra": {"x": ["1", "2"]},
    }


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


def test_tags_build_nothing_and_aliases_are_followed():
    values, notes = declared(
        "---\na: !!python/object/apply:os.system [x]\nb: !t v\nc: &x [1]\nd: *x\n---\n"
    )
    assert values == {"a": ["x"], "b": "v", "c": ["1"], "d": ["1"]}
    assert notes == ()


@pytest.mark.parametrize(
    ("text", "values", "note"),
    [
        ("---\na: 1\na: 2\n---", {"a": "2"}, "docs/a.md:3: front matter: duplicate key 'a'"),
        ("---\na: {b: 1, b: 2}\n---", {"a": {"b": "2"}}, ""),
        ("---\ntitle: A: b\nx: [1]\n---", {"title": "A: b", "x": ["1"]}, "docs/a.md:2: "),
        ("---\nok: 1\na: [1\nb: 'x\n---", {"ok": "1", "a": "[1", "b": "x"}, "read line by line"),
        ("---\ntags:\n\t- a\n\t- b\n---", {"tags": ["a", "b"]}, "line by line"),
        ("---\ntitle: {{ title }}\n---", {"title": "{{ title }}"}, "line by line"),
        ("---\na: *unknown\n---", {"a": "*unknown"}, "unknown alias"),
        ("---\na: &x [*x]\n---", {"a": "&x [*x]"}, "unknown alias"),
        ("---\na: b\n<<: {a: 1}\n---", {"a": "b <<: {a: 1}"}, "merge keys"),
        ("---\na: " + "[" * 50 + "]" * 50 + "\n---", {"a": "[" * 50 + "]" * 50}, "levels"),
        ("---\na: " + "x" * 70_000 + "\n---", {}, "64 KiB"),
        ("+++\na = 1\na = 2\n+++", {}, "docs/a.md:3: front matter: not valid TOML"),
        ("+++\na = " + "[" * 5000 + "\n+++", {}, "TOML"),
    ],
)
def test_what_cannot_be_read_costs_only_itself(text, values, note):
    found, notes = declared(text)
    assert found == values
    assert note in "".join(notes)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\ntitle: A: b\nsensitivity: confidential\n---", 2),
        ("---\nx: [1\nmeta: {a: b, 'Trust-Teir' : untrusted}\n---", 3),
        ("---\nscope: a\nscope: b\n---", 3),
        ("---\nscpoe: a\nscpoe: b\n---", 3),
        ("---\na: [\n? scope\n: hr\n---", 5),
        ("---\nx: &x {scope: hr}\n<<: *x\n---", 2),
        ("---\n- scope: hr\n---", 2),
        ("---\nscope: hr\na: " + "x" * 70_000 + "\n---", 2),
        ("+++\ntitle = x\nvalid_until = 2026-01-01\n+++", 2),
    ],
)
def test_what_may_hide_a_governing_key_refuses_the_document(text, line):
    message = refused(text)
    assert message.startswith(f"docs/a.md:{line}: front matter: ")
    assert any(part in message for part in ("may declare", "duplicate key"))


@pytest.mark.parametrize(
    "text", ["---\njust words\n---", "---\n- a\n- b\n---", "---\n# Title\n\nWords.\n---\nmore"]
)
def test_two_thematic_breaks_are_not_front_matter(text):
    assert read(text) is None


def test_an_alias_bomb_does_not_expand():
    levels = "\n".join(f"k{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))
    values, [note] = declared(f"---\nk0: &a0 x\n{levels}\n---")
    assert "more than 20000 values" in note
    assert values["k29"].startswith("&a29 [*a28")


def test_unreadable_front_matter_takes_linear_time():
    for text in (
        "a" * 20_000,
        "a " * 10_000,
        "a: [" + "a, " * 7_000,
        "a:\n" * 7_000,
        "'" * 20_000,
    ):
        with linear_time(20_000):
            read(f"---\nx: [\n{text}\n---\n")


@given(st.text(), st.sampled_from(["---", "+++"]))
def test_any_text_is_read_or_raises(text, fence):
    try:
        front = read(f"{fence}\n{text}\n{fence}\nbody")
    except DocumentError as error:
        assert error.code == "bad_front_matter"
        return
    if front is not None:
        assert all(isinstance(key, str) for key in front.declared)


@given(
    st.sampled_from(["scope", "trust_teir", "Sensitivity", "valid-until"]),
    st.text(alphabet="ab:-[]{}&*!|>?'\"#%@,\n 01.<~", max_size=40),
    st.text(alphabet="ab:-[]{}&*!|>?'\"#%@,\n 01.<~", max_size=40),
)
def test_a_typing_error_elsewhere_never_hides_a_governing_key(key, above, below):
    """Law: a governing key at the beginning of a line is read, or the document is refused."""
    text = f"---\n{above}\n{key}: x\n{below}\n---\n"
    try:
        front = read(text)
    except DocumentError:
        return
    if front is None or "---" in (line.rstrip() for line in above.split("\n")):
        return
    is_inside_a_text = any(marker in above for marker in "|>'\"#[{")
    assert key in front.declared or is_inside_a_text


@given(
    st.text(alphabet="ab:-[]{}&*!|>?'\"#%@,\n 0123456789.<~\\x"), st.sampled_from(["---", "+++"])
)
def test_any_yaml_markup_is_read_or_raises(text, fence):
    try:
        read(f"{fence}\n{text}\n{fence}\nbody")
    except DocumentError as error:
        assert error.code == "bad_front_matter"
