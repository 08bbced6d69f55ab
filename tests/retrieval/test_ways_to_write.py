"""Whatever way a thing is written in a text, and in a task: the passage is found by its words."""

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from support.corpora import ask, built, document

# As it stands in the text, as it is asked, and what is near to it and means something else.
WAYS = [
    # Characters of compatibility, ligatures, signs.
    ("oﬃce", "office", "offer"), ("traffic", "traﬃc", "track"), ("ﬂare", "flare", "fare"),
    ("Ｔｉｄｅ２０２６", "tide2026", "tide2025"), ("CO₂", "CO2", "CO"), ("H2O", "H₂O", "HO"),
    ("20 m²", "20 m2", "20 m"), ("½ cup", "1/2 cup", "2 cups"), ("47 ㎏", "47 kg", "47 mg"),
    ("2¹⁰", "2^10", "210"), ("315", "315", "3¹⁵"), ("Ⅷ", "VIII", "VII"), ("№ 77", "No 77", "No 7"),
    # Letters of their own, marks, invisible characters.
    ("Łódź", "lodz", "lod"), ("færge", "faerge", "farge"), ("Đurđević", "durdevic", "duric"),
    ("ılık", "ilik", "ilk"), ("Straßenplan", "strassenplan", "strasplan"), ("Øresund", "oresund", "res"),
    ("Zuga\u0308nge", "Zugänge", "Zug"), ("Fahr\u00adplan\u00adtafel", "Fahrplantafel", "Fahrplan"),
    ("light\u200bhouse", "lighthouse", "light"), ("façade", "facade", "fade"),
    # Numbers and units.
    ("35kg", "35 kg", "35 km"), ("82 hPa", "82hPa", "82 h"), ("€1,250.00", "1250", "1.25"),
    ("3480", "3,480", "3.48"), ("5 000", "5000", "500"), ("6\u202f200", "6 200", "620"),
    ("1'750'000", "1750000", "1750"), ("0x80070005", "80070005", "80070006"),
    ("٢٠٢٧", "2027", "2021"), ("FY2022", "FY 2022", "FY 2024"), ("GJ 2023", "GJ2023", "GJ2019"),
    # Words in parts.
    ("getUserName", "get user name", "getUserAge"), ("XMLParserPool", "xml parser pool", "xmlpool"),
    ("Re-entry", "reentry", "entry"), ("wifi", "Wi-Fi", "hifi"), ("U.S.A.", "USA", "USB"),
    ("v2.14.3", "2.14.3", "2.14.4"),
]  # fmt: skip
TEXTS = {
    "en": "the keeper of the harbour writes {} into the logbook every evening lantern",
    "de": "der Wärter des Hafens schreibt {} jeden Abend in das Logbuch Leuchtturm",
    "fr": "le gardien du port écrit {} dans le journal de bord chaque soir phare",
    "es": "el guarda del puerto escribe {} en el cuaderno cada noche faro",
    "it": "il custode del porto scrive {} nel diario ogni sera lanterna",
    "pl": "strażnik portu zapisuje {} w dzienniku każdego wieczoru latarnia",
    "da": "vagten i havnen skriver {} i logbogen hver aften fyrtårn",
    "tr": "liman bekçisi her akşam {} kaydını deftere yazar fener",
    "ru": "сторож порта записывает {} в журнал каждый вечер маяк",
    "ja": "港の番人は毎晩 {} を日誌に書く 灯台",
}


def text_with(language: str, thing: str, seed: str) -> str:
    """A text in a language with a thing, and other words of the language in another order."""
    shuffled = TEXTS[language].replace("{} ", "").split()
    Random(seed).shuffle(shuffled)
    return f"{TEXTS[language].format(thing)}. {' '.join(shuffled)}"


def shares(folder: Path, languages: Iterable[str]) -> tuple[float, float]:
    """The shares of questions with the passage among the first three, and with a near one above."""
    places: list[tuple[int, bool]] = []
    for language in languages:
        things = {f"way{n}": way[0] for n, way in enumerate(WAYS)}
        things |= {f"near{n}": way[2] for n, way in enumerate(WAYS)}
        texts = {name: text_with(language, thing, name) for name, thing in things.items()}
        documents = (document(name, [text], title="") for name, text in texts.items())
        with built(folder, documents) as corpus:
            for number, (_, asked, _) in enumerate(WAYS):
                bundle = ask(corpus, task=asked, lexical_only=True)
                found = [chunk.document_id for chunk in bundle.selected]
                place = found.index(f"way{number}") if f"way{number}" in found else len(things)
                places.append((place, f"near{number}" in found[:place]))
    first = sum(place < 3 for place, _ in places)
    return first / len(places), sum(is_above for _, is_above in places) / len(places)


@pytest.mark.parametrize(
    "languages", [["de", "ru"], pytest.param([*TEXTS], marks=pytest.mark.slow)], ids=len
)
def test_passages_are_found_however_things_are_written(
    tmp_path: Path, languages: list[str]
) -> None:
    found, above = shares(tmp_path, languages)
    assert found >= 0.97
    assert above <= 0.02
