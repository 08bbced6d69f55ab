"""What a person sees of a passage: the terms as the index matches them, and the part that answers."""

import re
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.interfaces.render import Terms, covered, excerpt
from rolebundle.retrieval.lexical import matching_words
from rolebundle.retrieval.query import build_query, words_of
from rolebundle.storage.corpus import Corpus
from support.corpora import built, document, scratch_folder

TEXTS = [
    "The tablet's refresh tokens are rotating; a rotation takes 60 s.",
    "src/auth.py raises E_CONFLICT:409 since v2.1.3, but auth alone is fine.",
    "Über naïve Cafés: die Zahlungen der Kunden werden täglich geprüft.",
    "用户认证令牌的轮换 v2.1 在夜间进行。",
    "Токены обновляются каждую ночь, и старые ключи удаляются.",
    "x\u0301 stra\u00dfe \U0001f600 emoji \u202e bidi \x1b[2J control",
]
WORDS = [
    *"tablet rotate rotations token auth.py E_CONFLICT:409 v2.1.3 auth cafe Zahlung Kunde".split(),
    *'prüfen die 令牌 认证 轮换 токен ключ ночью straße emoji zebra [ "'.split(),
    *("\x00", "60 s"),
]


def terms_of(task: str) -> Terms:
    return Terms([term.label for term in build_query(task, None).task_terms], task)


def covered_texts(task: str, text: str) -> list[str]:
    return [text[start:end] for start, end in covered(terms_of(task).find(text))]


@pytest.fixture(scope="module")
def corpus() -> Iterator[Corpus]:
    documents = [document(f"d{number}", [text]) for number, text in enumerate(TEXTS)]
    with scratch_folder() as folder, built(folder, documents) as opened:
        yield opened


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6, unique=True))
def test_a_term_is_found_where_the_index_matches_it(corpus: Corpus, words: Sequence[str]) -> None:
    query = build_query(" ".join(words), None)
    rowids = list(range(1, len(TEXTS) + 1))
    matched = matching_words(corpus, [[term] for term in query.task_terms], rowids)
    terms = Terms([term.label for term in query.task_terms], query.task.text)
    for text, rowid in zip(TEXTS, rowids, strict=True):
        found = {number for _, _, number in terms.find(text)}
        # What the index matches by a part or another spelling of a word is not marked.
        own = set(words_of(text))
        assert found >= {
            number
            for number in matched[rowid]
            for term in [query.task_terms[number]]
            if term.is_form or own.issuperset(words_of(term.text))
        }
        # The index has forms in the text's own languages only.
        extra = found - matched[rowid]
        assert all(query.task_terms[number].is_form for number in extra)


@pytest.mark.parametrize(
    ("task", "text", "parts"),
    [
        ("rotation of tokens", TEXTS[0], ["tokens", "rotating", "rotation"]),
        ("cafe", TEXTS[2], ["Cafés"]),
        ("where is auth.py", TEXTS[1], ["auth", "py", "auth"]),
        ("令牌", TEXTS[3], ["令牌"]),
        ("the of", TEXTS[0], ["The"]),
        ("zebra", TEXTS[0], []),
    ],
)
def test_what_is_highlighted(task: str, text: str, parts: list[str]) -> None:
    assert covered_texts(task, text) == parts


# -- the part that is shown --------------------------------------------------------------------

TABLE = """## Abuse cases

| id | abuse case | control |
| --- | --- | --- |
""" + "\n".join(
    f"| T{n} | {'A device keeps pushing after it was revoked' if n != 7 else 'A stolen tablet is opened'} | {'nothing else is known of it ' * 3}|"
    for n in range(1, 12)
)


def part(task: str, content: str, above: Sequence[str] = ()) -> str:
    return "\n".join(excerpt(content, terms_of(task), above))


def test_the_answering_row_of_a_table_is_shown() -> None:
    found = part("stolen tablet", TABLE, above=["Abuse cases"])
    assert "A stolen tablet is opened" in found
    assert "---" not in found and "Abuse cases" not in found


SHEET = "\n".join(
    ["Night of | On call | Phone"]
    + [
        f"Sat {day:02} Nov 2026 | {name} Marsh | 07700 9{day}"
        for day, name in enumerate("ABCDEFGHI", 7)
    ]
)


@pytest.mark.parametrize("border", ["", "| "])
def test_rows_keep_their_lines_and_that_of_each_word_is_shown(border: str) -> None:
    table = "\n".join(f"{border}{row}{border[::-1]}" for row in SHEET.splitlines())
    lines = part("Who has the phone on call in the night of 14 November?", table).splitlines()
    assert lines[0] == "Night of | On call | Phone"
    assert lines[1] == "Sat 07 Nov 2026 | A Marsh | 07700 97"
    assert lines[-2:] == ["… Sat 14 Nov 2026 | H Marsh | 07700 914", "…"]


def test_a_part_of_a_table_is_below_its_first_row() -> None:
    lines = part("Who is H Marsh, 07700 914?", SHEET).splitlines()
    assert lines[0] == "Night of | On call | Phone" and "H Marsh" in "".join(lines)


@pytest.mark.parametrize(
    "rows",
    [
        ["Test Result Unit Reference", "Creatinine 148 µmol/L 44 - 159", "Urea 11 mmol/L 2 - 9"],
        [
            "2026-08-28,Ketamine 100 mg/ml,stock check in the cupboard,,,41.6",
            "2026-09-04,Ketamine 100 mg/ml,stock check in the other room,,,40.7",
        ],
        [
            "- Bring the health card and the plan that the dentist has signed",
            "- Bring the letter of the insurance about the braces as well",
        ],
    ],
)
def test_what_is_no_prose_keeps_its_lines(rows: list[str]) -> None:
    assert part("ketamine braces creatinine", "\n".join(rows)).splitlines() == rows


def test_a_wrapped_paragraph_is_one_line() -> None:
    wrapped = (
        "The tablet was locked and offline. In three days the testers\n"
        "did not get at the notebook, because the key is in the\nkeystore."
    )
    assert part("notebook", wrapped) == wrapped.replace("\n", " ")


def test_headings_above_it_are_not_repeated_and_others_are() -> None:
    content = "## Tokens ##\n\nTokens\n======\n\n### Rotation\n\nEvery hour."
    assert part("hour", content, above=["Guide", "Tokens"]) == "### Rotation\nEvery hour."
    assert part("hour", "# Tokens", above=["Tokens"]) == "# Tokens", "better than nothing"


def test_the_part_with_most_of_the_words_is_shown_as_whole_sentences() -> None:
    filler = "Nothing of interest. " * 40
    content = f"A token. {filler} A stolen tablet replays a token. {filler} A tablet."
    found = part("stolen tablet token", content)
    assert "A stolen tablet replays a token." in found and found.startswith("… Nothing")


@pytest.mark.parametrize("names", [("2026-10-05", "2026-11-02"), ("5 Oct 2026", "2 Nov 2026")])
def test_the_newest_row_of_a_table_is_shown_to_who_asks_for_it(names: tuple[str, str]) -> None:
    rows = [f"{day} | {100 + n} | Bev with her long name of the north gate" for n, day in enumerate(
        [*(f"2025-0{n}-05" for n in range(1, 10)), *names])]  # fmt: skip
    table = "\n".join(["date | reading | by", *rows])
    lines = excerpt(table, terms_of("latest reading"), [], "Meter")
    assert lines == ["date | reading | by", f"… {rows[-1]}"]
    assert excerpt(table, terms_of("first reading"), [], "Meter")[-1] == "…"


def test_the_newest_of_the_rows_with_the_words_is_shown() -> None:
    rows = ["2026-01-05 | rose | 4", "2026-02-05 | rose | 5", "2026-03-05 | lily | 6"]
    lines = excerpt("\n".join(["day | what | price", *rows]), terms_of("latest rose"), [], "Prices")
    assert lines == ["day | what | price", f"… {rows[1]}", rows[2]]


def test_a_table_that_goes_on_begins_with_its_header() -> None:
    assert excerpt("A | 1\nB | 2", terms_of("b"), [], "Name | Paid") == [
        "Name | Paid", "… B | 2"
    ]  # fmt: skip


LINES = st.sampled_from(
    ["| {} | {} |", "- {} {}", "{} zebra {}.", "{}: {}", "{} {} " + 9 * "long "]
)


@given(st.lists(LINES, max_size=30), st.data())
def test_lines_are_shown_in_their_order_and_once_and_gaps_are_marked(
    shapes: list[str], data: st.DataObject
) -> None:
    content = "\n".join(shape.format(f"n{n}a", f"n{n}b") for n, shape in enumerate(shapes))
    words = re.findall(r"n\d+[ab]", content)
    asked = data.draw(st.lists(st.sampled_from([*words, "zebra", "latest", "long"]), max_size=4))
    below = data.draw(st.sampled_from([None, "Heading"]))
    found = " ".join(excerpt(content, terms_of(" ".join(["x", *asked])), [], below))
    runs = [re.findall(r"n\d+[ab]", part) for part in found.split("…")]
    shown = [words.index(word) for run in runs for word in run]
    assert shown == sorted({*shown})
    assert all(run == words[words.index(run[0]) :][: len(run)] for run in runs if run)
    assert not words or (
        (shown[0] == 0 or not runs[0]) and (shown[-1] + 1 == len(words) or not runs[-1])
    )


@given(
    st.text(st.sampled_from("ab zebra.。|-#\n\r\t\x1b\u202e用\u0301é`"), max_size=900),
    st.sampled_from(["zebra", "a b", "用", "é"]),
)
def test_a_part_of_any_text_is_harmless_and_short(content: str, task: str) -> None:
    found = part(task, content, above=["ab", "# zebra"])
    lines = found.split("\n")
    assert found == "" or all(line and line.isprintable() for line in lines)
    assert len(found) <= 2 * 240 + 2 * 123
