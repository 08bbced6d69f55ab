"""Words, letters and bytes: decoding, languages, forms, globs, references."""

import re
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolebundle.errors import DocumentError
from rolebundle.storage.lexical_index import TOKENIZER
from rolebundle.text.decoding import clean, decode, looks_binary, split_lines
from rolebundle.text.forms import (
    document_language,
    forms,
    index_text,
    index_tokens,
    phrase_form,
    spaced,
)
from rolebundle.text.languages import latin_language, likely_languages, non_latin_language
from rolebundle.text.paths import locations, matches
from rolebundle.text.references import (
    Lines,
    named_document,
    parse_lines,
    parse_passages,
    similar_names,
)
from rolebundle.text.words import lower_capitals, place_to_begin, place_to_cut, sentences_of
from support.amounts import EXAMPLES

# -- decoding --------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("text", "encodings"), [
    ("Карта спрятана под жерновом. Никто об этом не знает!", "cp1251 koi8_r cp866"),
    ("Το κλειδί βρίσκεται κάτω από την τρίτη πέτρα δίπλα στην πόρτα.", "cp1253"),
    ("鍵は門の横の三番目の石の下にあります。七時に来てください。", "cp932 euc_jp"),
    ("钥匙在大门旁边的第三块石头下面。请七点钟来。", "gb18030"),
])  # fmt: skip
def test_encodings_of_other_letters_are_guessed(text, encodings):
    for encoding in encodings.split():
        for before in ("", "Plain words that are as long as the others. " * 9):
            expected = before + text, (f"not UTF-8: read as {encoding}",)
            assert decode((before + text).encode(encoding)) == expected


def test_text_that_cp1252_would_garble_is_an_error():
    with pytest.raises(DocumentError) as caught:
        decode("ёжик".encode("koi8-r"), "notes/old.txt")
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


# -- Language detection by script, letters and function words --------------------------------------


@pytest.mark.parametrize(
    ("question", "codes"),
    [
        ("How do we rotate the signing token?", ()),
        ("TLS handshake timeout", ()),
        ("Wie rotieren wir die Schlüssel?", ("de",)),
        ("Wann starb Luther?", ("de",)),
        ("Muss Herr Krause zahlen?", ("de",)),
        ("Puedo pagar?", ("es",)),
        ("Can I sell my car, or a word of mine?", ()),
        ("Show me the mi and te units", ()),
        ("¿Cuándo se rotan las claves?", ("es",)),
        ("Comment renouveler les clés du serveur ?", ("fr",)),
        ("Anahtar nasıl yenilenir ve ne zaman?", ("tr",)),
        ("Thủ đô của Việt Nam là gì?", ("vi",)),
        ("Где находится ключ?", ("ru", "uk")),
        ("Какой ключ был отозван? Мы не знаем", ("ru",)),
        ("Де знаходиться ключ і що з ним?", ("uk",)),
        ("ما هي عاصمة مصر؟", ("ar",)),
        ("भारत की राजधानी क्या है", ("hi",)),
        ("日本の首都はどこですか", ()),
        ("", ()),
        ("!? \x00 🚀", ()),
    ],
)
def test_languages_that_a_question_may_be_in(question: str, codes: tuple[str, ...]) -> None:
    assert likely_languages(question) == codes


def test_letters_identify_a_language_without_function_words() -> None:
    assert "de" in likely_languages("Schlüsselverwaltung")
    assert "pl" in likely_languages("zarządzanie kluczami")


def test_running_text_that_is_half_english() -> None:
    german = "Der Schlüssel wird von dem Server erneuert und ist dann für alle Geräte gültig."
    english = "The server rotates the key, and it is then valid for all of the devices."
    assert latin_language(german) == "de"
    assert latin_language(f"{english} {german}") == "de"
    assert latin_language(english) == ""
    assert latin_language("E_CONFLICT:409 src/auth.py de") == ""


def test_addresses_paths_and_identifiers_are_ignored() -> None:
    header = "Authors: A. Lee <lee@intel.com>, B. Ray <ray@ibm.com>; see https://a.com/os/com"
    assert latin_language(header) == ""
    assert latin_language("pub fn std::os::unix std::os::wasi std::os::fd") == ""
    assert latin_language("LA32R, LA32S, LA64 la_32 __la_t") == ""
    spanish = "El servidor de intel.com renueva la clave para los equipos que usan esta red."
    assert latin_language(spanish) == "es"


def test_one_language_for_other_letters_than_latin() -> None:
    assert non_latin_language("Ключ от сервера, the key") == "ru"
    assert non_latin_language("the key") == ""


# -- Word forms: tokens that are indexed and searched in addition to the words ---------------------


def tokens(text: str) -> list[str]:
    """The tokens of a text by the lexical index's own tokenizer."""
    with apsw.Connection(":memory:") as db:
        db.execute(f"CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = '{TOKENIZER}')")
        db.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, instance)")
        db.execute("INSERT INTO t VALUES (?)", (text,))
        return [row[0] for row in db.execute("SELECT term FROM v ORDER BY offset")]


def test_inflected_words_have_one_stem() -> None:
    assert forms("Häuser Hauses", ["de"]).stems == ["haus", "haus"]
    assert forms("ключами ключей", ["ru"]).stems == ["ключ", "ключ"]
    assert forms("ключами", ["uk"]).stems == ["ключа"]


def test_a_word_of_several_languages_has_a_stem_of_each_once() -> None:
    assert forms("naïve", ["fr", "nl"]).stems == ["naïv", "naïve"]
    assert forms("где", ["ru", "uk"]).stems == ["где"]


def test_unspaced_scripts_have_letters_and_pairs() -> None:
    assert forms("令牌轮换", []) == ([], ["令", "牌", "轮", "换"], ["令牌", "牌轮", "轮换"])
    assert forms("ที่นี่", []) == ([], ["ที่", "นี่"], ["ที่นี่"])


def test_syllables_keep_their_tones() -> None:
    _, letters, pairs = forms("Hà Nội", ["vi"])
    assert len(letters) == 2
    assert len(pairs) == 1
    assert index_text(["Hà Nội của Việt Nam và"], "vi") != index_text(
        ["Ha Nôi của Viêt Nam và"], "vi"
    )


def test_words_with_digits_have_no_forms() -> None:
    assert forms("v2 e4", ["de"]).stems == []


def test_a_very_long_word_has_no_stem() -> None:
    assert forms("ä" * 1_000_000, ["de", "fi", "hu"]).stems == []
    assert forms("令" * 3, []).pairs == ["令令", "令令"]


def test_english_has_no_forms() -> None:
    assert index_text(["The naïve keys – they're rotated"], "") == ""
    assert index_text(["rotated keys"], "en") == ""


def test_a_word_next_to_an_unspaced_script_is_indexed_as_a_word() -> None:
    assert spaced("使用v2.1.3版本") == "使用 v2.1.3 版本"
    assert tokens(index_text(["使用v2.1.3版本"], ""))[:3] == ["v2", "1", "3"]


def test_the_language_of_a_document() -> None:
    assert document_language(["The key is in the file."], "de") == ""
    assert document_language(["Der Schlüssel ist in der Datei und wird geladen."], "") == "de"
    assert document_language(["x = 1"], "de-AT") == "de"
    assert document_language([], "und") == "und"


def test_the_forms_of_a_phrase_are_adjacent_in_the_index() -> None:
    assert phrase_form("rotierte Schlüssel", "de") == "rotiert schlussel"
    assert phrase_form("令牌轮换", "") == "令牌 牌轮 轮换"
    assert phrase_form("API 令牌", "") == ""
    assert phrase_form("threat model", "") == ""
    within = tokens(index_text(["请问令牌轮换是什么"], ""))
    phrase = tokens(index_tokens(phrase_form("令牌轮换", "")))
    assert any(within[at : at + len(phrase)] == phrase for at in range(len(within)))


@pytest.mark.parametrize("word", ["हिन्दी", "ที่นี่", "ភាសាខ្មែរ", "বাংলা", "עִבְרִית"])
def test_a_form_with_marks_is_one_token_of_the_index(word: str) -> None:
    assert len(tokens(index_tokens(word))) == 1


@given(st.text(max_size=60))
def test_every_form_of_any_text_is_at_most_one_token(text: str) -> None:
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    for kind in forms(text, ["ru", "de", "vi"]):
        for form in kind:
            assert len(tokens(index_tokens(form))) <= 1


# -- Texts and long words in capitals are lowered; acronyms and the rest of a text stay ------------


@pytest.mark.parametrize(
    ("text", "lowered"),
    [
        ("THE BOUNDARY LAYER OF A WING", "the boundary layer of a wing"),
        ("VACUUM", "vacuum"),
        ("Clean up with VACUUM in SQL", "Clean up with vacuum in SQL"),
        ("raise the setting MAX_CONNECTIONS", "raise the setting MAX_connections"),
    ],
)
def test_texts_and_long_words_in_capitals_are_lowered(text: str, lowered: str) -> None:
    assert lower_capitals(text) == lowered


@pytest.mark.parametrize(
    "text", ["HTTP API", "The JSON of an HTTP reply", "HTTPSConnection", "Boundary Layers", "", "№"]
)
def test_acronyms_and_names_stay(text: str) -> None:
    assert lower_capitals(text) == text


@given(st.text() | st.text("aB cDEFGH"))
def test_only_case_changes_and_only_once(text: str) -> None:
    lowered = lower_capitals(text)
    assert lowered.lower() == text.lower()
    assert lower_capitals(lowered) == lowered


# -- A manifest's globs: what they match, against a slow and plain reading of them -----------------


@pytest.mark.parametrize(
    ("glob", "path", "matched"),
    [
        ("docs/**", "docs", False),
        ("docs/**", "mydocs/a.md", False),
        ("a?c", "a/c", False),
        ("[ab].md", "a.md", False),
        ("[ab].md", "[ab].md", True),
        ("a.md", "axmd", False),
        ("", "", True),
        ("*", "a\nb", True),
    ],
)
def test_matches(glob: str, path: str, matched: bool) -> None:
    assert matches(glob, path) is matched


def slow(glob: str) -> re.Pattern[str]:
    """The plain reading, which can run away."""
    tokens = re.findall(r"(?:(?<=/)|^)\*\*/|\*\*|\*|\?|[^*?]", glob)
    plain = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(plain.get(t, re.escape(t)) for t in tokens), re.DOTALL)


names = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)
globs = st.lists(
    st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "/**/", "*a"]), max_size=8
).map("".join)


@settings(max_examples=5 * EXAMPLES)
@given(globs.filter(lambda glob: "***" not in glob), names)
def test_the_same_as_the_plain_reading(glob: str, path: str) -> None:
    assert matches(glob, path) == bool(slow(glob).fullmatch(path))


# -- How references are written, and which name was meant ------------------------------------------

KNOWN = [
    ("docs/guides/setup.md", "guides/setup.md"),
    ("docs/old/setup.md", "old/setup.md"),
    ("docs/README.md", "README.md"),
    ("wiki/deep/rollback-plan.md", "deep/rollback-plan.md"),
]


@pytest.mark.parametrize(
    ("reference", "lines", "passages", "name"),
    [
        ("a.md:1-2", Lines("a.md", 1, 2), None, "a.md"),
        ("a:b.md:10-2", Lines("a:b.md", 10, 2), None, "a:b.md"),
        ("#d:1:2", None, ("d", 1, 2), "d"),
        ("a.md", None, None, "a.md"),
        ("a.md:1", Lines("a.md", 1, 1), None, "a.md"),
    ],
)
def test_the_parts_of_a_reference(
    reference: str, lines: Lines | None, passages: tuple[str, int, int] | None, name: str
) -> None:
    assert parse_lines(reference) == lines
    assert parse_passages(reference) == passages
    assert named_document(reference) == name


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("setup.md", "docs/old/setup.md"),
        ("guide/setup.txt", "docs/guides/setup.md"),
        ("odl/setup.md", "docs/old/setup.md"),
        ("readme.md", "docs/README.md"),
        ("rolback-plan.md", "wiki/deep/rollback-plan.md"),
        ("rollback-plan", "wiki/deep/rollback-plan.md"),
        ("zzzz", None),
        ("", None),
        ("/", None),
    ],
)
def test_the_most_likely_name_comes_first(name: str, first: str | None) -> None:
    assert (similar_names(name, KNOWN) or [None])[0] == first


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_suggestions_are_known_names_in_any_order_of_the_documents(
    name: str, known: list[str]
) -> None:
    pairs = [(document, document) for document in dict.fromkeys(known)]
    found = similar_names(name, pairs)
    assert set(found) <= set(known)
    assert found == similar_names(name, pairs[::-1])


def test_locations_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = str(tmp_path)
    assert locations("link/a.md", folder) == [f"{folder}/link/a.md", f"{folder}/real/a.md"]
    assert locations(f"{folder}/link/../a.md", None) == [f"{folder}/a.md"]
    assert locations("a.md", None) == []
    assert locations("a\0.md", folder) == []


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("gb2312", "gb18030", "朱镕基 码头"),
        ("shift_jis", "cp932", "①倉庫の鍵は㈱山田"),
        ("x-sjis", "cp932", "倉庫の鍵"),
        ("windows-874", "cp874", "กุญแจโกดัง"),
        ("iso-8859-8-i", "iso-8859-8", "המפתח במרתף"),
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("latin-2", "iso-8859-2", "Klíč visí"),
    ],
)
def test_labels_of_encodings_are_those_of_browsers(label, codec, text):
    assert decode(text.encode(codec), declared=label) == (text, ())


@pytest.mark.parametrize(
    "declaration",
    [
        '<?xml version="1.0" encoding="windows-1251"?>',
        '@charset "windows-1251";',
        "#!/usr/bin/python\n# -*- coding: cp1251 -*-",
        '"Content-Type: text/plain; charset=cp1251\\n"',
        "\\usepackage[cp1251]{inputenc}",
        " " * 9_000 + "<meta charset=windows-1251>",
    ],
)
def test_a_text_declares_its_encoding(declaration):
    text = f"{declaration}\nКлюч от склада\n"
    assert decode(text.encode("cp1251")) == (text, ())


def test_one_bad_byte_is_one_bad_character():
    text, notes = decode("Ключ от склада ".encode("cp1251") * 9 + b"\x98", declared="cp1251")
    assert text == "Ключ от склада " * 9 + "\ufffd"
    assert len(notes) == 1
    assert decode("Übergröße für Jürgen".encode() + b"\xff")[0] == "Übergröße für Jürgen\ufffd"


@pytest.mark.parametrize(
    "number", ["250", "4,560", "1.250,00", "292 500", "2024-05-21", "0664-1234", "18:30"]
)
def test_no_number_is_cut(number: str) -> None:
    """A part of a number is another number: £25 of £250."""
    text = f"The cap stays at £{number} a year."
    for length in range(1, len(text)):
        shown = text[: place_to_cut(text, length)]
        assert number in shown or not any(map(str.isdigit, shown))
        shown = text[place_to_begin(text, length) :]
        assert number in shown or not any(map(str.isdigit, shown))


def test_a_sentence_ends_with_its_paragraph():
    text = "Work ends at 17 h.\n\n## 2. Bar\nThe bar is at No.\n\nThe keys."
    assert [s.strip() for s in sentences_of(text)] == [
        "Work ends at 17 h.",
        "## 2. Bar",
        "The bar is at No.",
        "The keys.",
    ]
