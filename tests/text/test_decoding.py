import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.errors import DocumentError
from rolebundle.text.decoding import (
    clean,
    decode,
    looks_binary,
    split_lines,
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("a\fb\vc\x1cd\u2028e\x85f\n", ["a\fb\vc\x1cd\u2028e\x85f"]),
    ],
)
def test_lines_are_split_as_in_an_editor(text, lines):
    assert split_lines(text) == lines


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_with_a_byte_order_mark_is_decoded(encoding):
    assert decode("naïve — 漢字\n".encode(encoding))[0] == "naïve — 漢字\n"


def test_western_text_is_decoded_as_cp1252_with_a_note():
    text, notes = decode("The café was “déjà vu” – quite naïve.\n".encode("cp1252"))
    assert text == "The café was “déjà vu” – quite naïve.\n"
    assert notes == ("not UTF-8: read as cp1252",)


def test_lines_may_have_different_encodings():
    lines = ["Jürgen 2001, Müller\n".encode("cp1252"), "Łukasz – Zoë\r\n".encode(), b"a\x81b " * 3]
    assert decode(b"".join(lines))[0] == "Jürgen 2001, Müller\nŁukasz – Zoë\r\n" + "a\ufffdb " * 3


def test_text_that_cp1252_would_garble_is_an_error():
    with pytest.raises(DocumentError) as caught:
        decode("Съешь же ещё этих мягких булок".encode("koi8-r"), "notes/old.txt")
    assert caught.value.code == "undecodable"
    assert "notes/old.txt" in caught.value.message


def test_nuls_are_replaced_with_a_note():
    text, notes = decode(b"a" * 9000 + b"\x00b")
    assert text.endswith("a\ufffdb")
    assert notes == ("1 NUL or surrogate character replaced by U+FFFD",)


def test_unpaired_surrogates_are_replaced():
    assert clean("a\ud800b\udfff") == ("a\ufffdb\ufffd", 2)


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"plain text", False),
        ("漢字".encode("utf-16"), False),
        (b"\x7fELF\x00\x01", True),
        (b"\x89PNG\r\n\x1a\n\x00\x00", True),
        (b"\x00" + "漢字".encode("utf-16"), True),
    ],
)
def test_binary_data_is_detected(data, binary):
    assert looks_binary(data) is binary


@given(st.binary())
def test_any_bytes_are_decoded_to_storable_text_or_raise(data):
    try:
        text, _ = decode(data)
    except DocumentError as error:
        assert error.code == "undecodable"
        return
    text.encode("utf-8")
    assert "\x00" not in text
