"""Figures that a text itself says no longer hold."""

import pytest

from rolebundle.text.replaced import digits_in, may_replace, replaced_figures, says_change
from support.amounts import lengths, linear_time


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("The total is now 1,120 euros instead of 1,390 euros.", ["1,390 euros"]),
        ("The premium rises from 214.00 to 236.50 euros from\n1 January.", ["214.00"]),
        ("The premium is 236.50 euros, up from 214.00 euros.", ["214.00 euros"]),
        ("Ben and Tom. Moved from 13 October.", ["13 October."]),
        ("Can we move it from Tuesday 13 October to Thursday 5 November?", ["13 October"]),
        ("Moved from 13 October to 5 November.", ["13 October"]),
        ("He is off 16 to 20 November instead of 2 to 6 November.", ["6 November."]),
        ("Rent: 34 euros an evening (before: 22 euros).", ["22 euros"]),
        ("Please do not use the 2,480 mm I wrote.", ["2,480 mm"]),
        ("Not on 5 May but on 6 May.", ["5 May"]),
        ("The rehearsal on 5 May is cancelled.", ["5 May"]),
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
    ("sentence", "is_of_change"),
    [("The fee was 15 euros.", True), ("The fee is 15 euros.", False), ("12, not 15", False),
     ("It is not on 5 May but on 6 May.", True), ("Bisher waren es 15 Euro.", True)],
)  # fmt: skip
def test_a_sentence_that_speaks_of_a_change(sentence: str, is_of_change: bool) -> None:
    assert says_change(sentence) == is_of_change


@pytest.mark.parametrize("other", ["1390 euros", "1,390.00", "The 1.390 €"])
def test_a_quick_test_reads_numbers_in_any_notation(other: str) -> None:
    assert may_replace("1,120 euros instead of 1,390 euros", digits_in(other))
    assert not may_replace("1,390 euros instead of 1,120 euros", digits_in(other))


@lengths
@pytest.mark.parametrize("piece", ["instead of 5 ", "(was 5", "moved from 5 May to ", "from a b "])
def test_a_text_full_of_changes_takes_linear_time(piece: str, length: int) -> None:
    text = (piece * length)[: length // 10]
    replaced_figures("5 instead of 6")
    with linear_time(length):
        replaced_figures(text)
