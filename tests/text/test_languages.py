"""Language detection by script, letters and function words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.text import languages
from rolebundle.text.languages import latin_language, likely_languages, non_latin_language


@pytest.mark.parametrize(
    ("question", "codes"),
    [
        ("How do we rotate the signing token?", ()),
        ("TLS handshake timeout", ()),
        ("Wie rotieren wir die Schlüssel?", ("de",)),
        ("Wann starb Luther?", ("de",)),
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


_PIECES = [" ", "", ".", "/", "1", "_", "\u2019", "\u0130", "ß", "é", "X", "\n", "の"]
_WORDS = [*sorted(languages._LANGUAGES_OF)[::40], "the", "key", "intel"]


@given(st.lists(st.sampled_from([*_PIECES, *_WORDS, *map(str.upper, _WORDS)]), max_size=30))
def test_the_fast_test_for_english_never_misses_another_language(parts: list[str]) -> None:
    text = "".join(parts).lower()
    counted, _ = languages._hits(text)
    assert not languages._surely_english(text) or max(counted.values(), default=0) < 2
