"""Word forms: tokens that are indexed and searched in addition to the words."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.storage.lexical_index import TOKENIZER
from rolebundle.text.forms import (
    document_language,
    forms,
    index_text,
    index_tokens,
    phrase_form,
    spaced,
)


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
