"""Figures that a text itself says no longer hold."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.text.amended import changes, is_denied
from rolebundle.text.figures import find_figures
from rolebundle.text.replaced import (
    digits_in,
    has_replacement_cue,
    is_same,
    replaced_figures,
    says,
    words_gone,
)
from rolebundle.verify.figures import check_figures
from support.amounts import lengths, linear_time


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("The total is now 1,120 euros instead of 1,390 euros.", ["1,390 euros"]),
        ("The premium rises from 214.00 to 236.50 euros from\n1 January.", ["214.00"]),
        ("The premium is 236.50 euros, up from 214.00 euros.", ["214.00 euros"]),
        ("Ben and Tom. Moved from 13 October.", ["13 October"]),
        ("Can we move it from Tuesday 13 October to Thursday 5 November?", ["13 October"]),
        ("Moved from 13 October to 5 November.", ["13 October"]),
        ("He is off 16 to 20 November instead of 2 to 6 November.", ["2", "6 November"]),
        ("Rent: 34 euros an evening (before: 22 euros).", ["22 euros"]),
        ("Please do not use the 2,480 mm I wrote.", ["2,480 mm"]),
        ("Not on 5 May but on 6 May.", ["5 May"]),
        ("The rehearsal on 5 May is cancelled.", ["5 May"]),
        ("It is 35 percent from now on, not 25 percent.", ["25 percent"]),
        ("Statt 1,45 Euro nun 1,70 Euro pro Zeile. Er wird auf den 8. Mai verlegt.", ["1,45 Euro"]),
        ("The 65 °C decision of 8 September no longer holds.", ["65 °C"]),
        ("The size goes up from 8 to 12 cells.", ["8"]),
        ("From Friday, 1 May 2026 the fee no longer applies.", []),
        ("Ab sofort nur noch 2,5 mg morgens (statt 5 mg).", ["5 mg"]),
        ("Der Eingriff am 14. Januar entfällt.", ["14. Januar"]),
        ("Er wird vom 14. Januar auf den 28. Januar verschoben.", ["14. Januar"]),
        ("Strom | 87 | monatlich | vorher 79", []),
        ("Strom | 87 | monatlich, vorher 79", ["79"]),
        ("Le prix passe de 38,50 à 43,20 euros.", ["38,50"]),
        ("Il coûte 43 euros au lieu de 38 euros.", ["38 euros"]),
        ("Sube de 38 euros a 43 euros.", ["38 euros"]),
        ("Cuesta 43 euros en lugar de 38 euros.", ["38 euros"]),
        ("The deadline of 31 May is extended to 30 June.", ["31 May"]),
        ("The quota is 50 GB; it used to be 20 GB.", ["20 GB"]),
        ("It costs 29 EUR, not 24 EUR.", ["24 EUR"]),
        ("They told us that the 8th of May is gone.", ["8th of May"]),
        ("The band cannot do 14:30, we begin at 15:15.", ["14:30"]),
        ("Bisoprolol 5 mg is taken each morning, 10 mg were taken before May.", []),
        ("The hall cannot make 200 euros of it. 200 euros is off.", []),
        ("5 and 6 May are gone.", ["5", "6 May"]),
        ("The hall cannot make more than 200 euros of it.", []),
        ("Sie kostet 29 Euro, nicht 24.", ["24"]),
        ("Delivery is from 22 February 2027, not from the 8th.", ["8th"]),
        ("The shop opens at 9:30 and not at 9:00.", ["9:00"]),
        ("The price is 12, not 15.", []),
        ("It takes 12 days, not more than 15 days.", []),
        ("The visit no. 14 is moved to 22 February.", []),
        ("Pasamos la visita de obra nº 14 al lunes 16.", []),
        ("Pasamos la visita de obra 14 al lunes 16.", []),
        ("Es geht von Seite 4 auf Seite 6.", []),
        ("Il passe ses vacances du 9 au 23 novembre.", []),
        ("The 14 rooms are moved to 23 November.", []),
        ("The 3rd lesson is moved to 23 November.", []),
        ("14 is moved to Monday 23.", []),
        ("Das Treffen am 3. Mai wird auf den 10. Mai verschoben.", ["3. Mai"]),
        ("On 3 May the price is raised to 15 euros.", []),
        ("From 1 May the discount no longer applies.", []),
        ("Open from 9:00 to 17:00.", []),
        ("It lasts no longer than 5 minutes.", []),
        ("Tasks of over 30 minutes are cancelled.", []),
        ("Not only 5 but 6 people came.", []),
        ("Bump pytest from 8.1.1 to 8.2.0, changed from 1.2.3 to 1.2.4.", []),
    ],
)
def test_what_no_longer_holds(text: str, figures: list[str]) -> None:
    assert [replaced.figure.text for replaced in replaced_figures(text)] == figures


def test_the_words_that_say_so_and_what_holds_in_place() -> None:
    [replaced] = replaced_figures(
        "Dear Ann,\nthe fee is now 12 euros\ninstead of 15 euros, all in."
    )
    assert replaced.new and replaced.new.text == "12 euros"
    assert replaced.words == "Dear Ann, the fee is now 12 euros instead of 15 euros"
    assert "15" not in replaced.context and "all in" in replaced.context


@pytest.mark.parametrize(
    "text",
    [
        "Delivery moves from 9 to 23 November.",
        "La entrega del pedido 4471 pasa del 9 al 23 de noviembre.",
        "La entrega pasa del lunes 9 al lunes 23 de noviembre.",
        "Die Lieferung wird vom 9. auf den 23. November verschoben.",
        "La livraison passe du 9 au 23 novembre.",
        "It is on 23 November, not on the 9th.",
        "The 9th is moved to 23 November.",
    ],
)
def test_an_old_day_has_the_month_of_the_new_one(text: str) -> None:
    [replaced] = replaced_figures(text)
    assert replaced.figure.readings == (("date", (None, 11, 9)),)


@pytest.mark.parametrize(
    "text", ["It is 36.20 euros instead of 31.50.", "Von 31,50 auf 36,20 Euro"]
)
def test_an_old_number_has_the_unit_of_the_new_one(text: str) -> None:
    [replaced] = replaced_figures(text)
    assert replaced.figure.readings[0] == ("€", Fraction("31.5"))


@pytest.mark.parametrize(
    ("sentence", "is_of_change"),
    [("The fee was 15 euros.", True), ("The fee is 15 euros.", False), ("12, not 15", False),
     ("It is not on 5 May but on 6 May.", True), ("Bisher waren es 15 Euro.", True),
     ("Ask before you use it.", False), ("Before, it is 15 euros.", True),
     ("We meet in the Old Barn", False), ("Wir nehmen das alte Formular", True)],
)  # fmt: skip
def test_a_sentence_that_speaks_of_what_was(sentence: str, is_of_change: bool) -> None:
    assert (says(sentence, "past", "change") or bool(replaced_figures(sentence))) == is_of_change


@pytest.mark.parametrize(
    ("sentence", "is_change"),
    [("The rent was paid on 4 May.", False), ("The rule no longer holds.", True),
     ("Der Beschluss ist aufgehoben.", True), ("La règle est remplacée.", True)],
)  # fmt: skip
def test_a_sentence_that_says_a_change(sentence: str, is_change: bool) -> None:
    assert says(sentence, "change") == is_change


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("They cannot deliver on the 24th, their lorry is broken.", "2026-10-24"),
        ("We cannot begin on 9 November. We are busy.", "2026-11-09"),
        ("Wir können am 24. Oktober leider nicht kommen.", "2026-10-24"),
        ("Nous ne pouvons pas livrer le 4 mai.", "2026-05-04"),
        ("No podemos venir el 4 de mayo.", "2026-05-04"),
    ],
)
def test_a_day_that_cannot_be(text: str, day: str) -> None:
    [replaced] = replaced_figures(text)
    [found] = find_figures(day)
    assert is_same(replaced.figure, found)


@pytest.mark.parametrize(
    "text",
    [
        "Wir können am 24. Oktober kommen.",
        "We cannot find the 3rd lesson on the 3rd page.",
        "You cannot work on 2 machines at once.",
        "We cannot accept more than 30 on 4 May.",
    ],
)
def test_other_sentences_with_cannot(text: str) -> None:
    assert not replaced_figures(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The gutters will be zinc, not copper.", {"copper"}),
        ("Instead of raclette there is soup.", {"raclett"}),
        ("Please report it in the app and no longer by post.", {"post"}),
        ("Mr Brandl is ill; Ms Wolff comes.", {"brandl"}),
        ("Locksmith: Peter Moll retired.", {"peter", "moll"}),
        ("The board moves from the hall to the laundry.", {"hall"}),
        ("The heritage office rejects the grey.", {"grey"}),
        ("Goggles are forbidden in the pool.", {"goggl"}),
        (
            "The floor of the gym is renewed in May. The fair cannot be held there.",
            {"floor", "gym"},
        ),
        ("Mateo ya no tiene que evitar el sésamo, dice la señora Keller.", {"sesam"}),
        ("Not only copper, and not yet zinc.", set()),
        ("It is not before 5 May.", set()),
        ("Es gibt Suppe statt Raclette.", {"raclett"}),
        ("Elle ne vient plus, pas de raclette.", {"raclet"}),
        ("Pour le gâteau il y a des amandes au lieu de noisettes.", {"noiset"}),
        ("Para la cena usamos la terraza en lugar del comedor grande.", {"comedor"}),
    ],
)
def test_words_of_which_a_text_says_that_they_are_gone(text: str, words: set[str]) -> None:
    assert words <= words_gone(text)
    assert words or not words_gone(text)


@pytest.mark.parametrize("title", ["Mr", "Ms", "Mrs", "Dr", "Herr", "Frau", "Mme"])
def test_a_title_is_not_gone(title: str) -> None:
    assert words_gone(f"{title} Brandl is ill; somebody comes in her place.") == {"brandl"}


@pytest.mark.parametrize("other", ["1390 euros", "1,390.00", "The 1.390 €"])
def test_a_quick_test_reads_numbers_in_any_notation(other: str) -> None:
    assert has_replacement_cue("1,120 euros instead of 1,390 euros", digits_in(other))
    assert not has_replacement_cue("1,390 euros instead of 1,120 euros", digits_in(other))


@lengths
@pytest.mark.parametrize(
    "piece",
    [
        "instead of 5 ",
        "(was 5",
        "moved from 5 May to ",
        "from a b ",
        "cannot a on ",
        "not a ",
        "A is ",
        "moves from ",
        "gym cannot. ",
    ],
)
def test_a_text_full_of_changes_takes_linear_time(piece: str, length: int) -> None:
    text = (piece * length)[: length // 10]
    replaced_figures("5 instead of 6")
    with linear_time(length):
        replaced_figures(text)
        words_gone(text)
        says(text, "change", "new", "who", "stays", "there")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The lift isn’t in use.", True),
        ("Le magasin n'ouvre plus le lundi.", True),
        ("The gown T-016 was given by Mabel.", False),
        ("Die Praxis öffnet am 5. Mai.", False),
    ],
)
def test_denials(text: str, expected: bool) -> None:
    assert is_denied(text) == expected


PARTS = """on 13, 19, 26 and 30 March|from 45 to 9.11.|am 14.12. um 13 Uhr|le 14/12|December 21–25|two
days|18h30|7.30|14.12|£1,250.50|Shed 1 may|3rd|clause 5|2026-11-30|30 euros instead of 25|moved from 3 to
9 May|not above 230|GBP 33.50|un mes|12 of 15|10, 17 and 24 January|is dropped|7-9 pm|½|31.02.2026|99.99.|
and | to | not | instead of |: |; | or |no longer|freitags|, |. """.split("|")


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.lists(st.sampled_from(PARTS), max_size=8))
def test_figures_in_any_order_are_read_and_compared(parts: list[str], others: list[str]) -> None:
    text, other = " ".join(parts), " ".join(others)
    assert all(f.readings and text[f.start : f.end] for f in find_figures(text))
    replaced_figures(text)
    found = changes(text, "", other, "")
    assert all(one.old.text in text and one.new.text in other for one in found)
    check_figures(other, [text], [text])
