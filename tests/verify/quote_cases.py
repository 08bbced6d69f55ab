"""Drafts with true quotes in other typography, and with quotes that were tampered with.

All are generated from texts with a seeded generator. A tampering changes what is said: its words
differ from every passage's. The comparison is simple on purpose and shares no code with the product.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rolebundle.contracts.documents import Passage
from support.values import passage

OWN_TEXTS = (
    """The upload limit is 1.5 GB per file and 50 MB in the free plan. A part that was not confirmed
is sent again within 24 hours, unless the user has signed out. Dr. Ana Ruiz approved the change on
3 May 2026, but Bob Lind did not. Only owners and editors may share a folder. The cache must be
emptied before 12:30 if the disk is more than 90% full. We rejected the proposal that every device
keeps a full copy. Refunds are paid within 30 days, except for gifts. No note is deleted without a
copy. The dose is 2.5 mg per day – never more than 10 mg. All tokens expire after 15 minutes.""",
    """## Results — second trial

The team “Nord” measured 10² samples at −5 °C; 3 of them failed. Some readers said the guide isn't
clear. The ‘old’ scale (½ of the new one) is still used in Zürich and in Malmö. It is not the case
that the second sensor drifts. The report was written by Mira Koh and checked by Jonas Weber. Costs
rose from €1,200 to €1,450 between 2019 and 2024. The pump, which was built in Oslo, runs day and
night. Most of the valves are re-used; many were never cleaned. The valve opens when the pressure is
at least 4 bar. It may close again … if the pump is off.""",
    """Passwords must be changed every 90 days. Users can't reuse the last 5 passwords. Administrators
should review all accounts each Monday. Guests may read public pages only. The audit log is kept for
7 years and is never edited. If a login fails 3 times, the account is locked for 15 minutes. The lock
ends earlier only if an administrator removes it. Neither guests nor contractors may export data.
The office in Lund closes at 17:00 on Fridays. The Lund server holds 12 TB; the Bergen server holds
8 TB. Backups are written hourly, checked daily and removed after 30 days.""",
)  # fmt: skip
_ROOT = Path(__file__).parents[2]
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z“\"])")


class Case(NamedTuple):
    """A draft with one quote, the passages, what its sentence cites, and the true text."""

    kind: str
    draft: str
    passages: tuple[Passage, ...]
    cited: tuple[Passage, ...]
    true_text: str


@cache
def texts() -> tuple[str, ...]:
    """Passages of about 1,000 characters: own ones, and those of the sample corpus."""
    found = list(OWN_TEXTS)
    for path in sorted((_ROOT / "sample_corpus").rglob("*")):
        if path.suffix in (".md", ".txt", ".rst"):
            paragraphs = path.read_text("utf-8").split("\n\n")
            found += ["\n\n".join(paragraphs[at : at + 3]) for at in range(0, len(paragraphs), 3)]
    return tuple(text for text in found if len(_sentences(text)) >= 3)


def _sentences(text: str) -> list[str]:
    """Sentences of prose, in the text's own characters."""
    parts = [part.strip() for block in text.split("\n\n") for part in _SENTENCE.split(block)]
    return [
        part for part in parts
        if 5 <= len(part.split()) <= 45 and part[-1] in ".!?" and part[0].isalpha()
        and not re.search(r"[\[\]|*`_#<>~]|^\W|\n\s*[-*\d]|\.\.\.|…|\"", part)
        and part.count("(") == part.count(")")
    ]  # fmt: skip


@cache
def _all_texts() -> str:
    return "\n".join(map(plain, texts()))


@cache
def plain(text: str) -> str:
    """A text for comparison: letters, figures and signs without marks, breaks and case."""
    folded = "".join(
        "^" + unicodedata.normalize("NFKC", c) if unicodedata.normalize("NFKC", c) != c and c.isnumeric()
        else unicodedata.normalize("NFKC", c)
        for c in unicodedata.normalize("NFC", text)
    )  # fmt: skip
    folded = re.sub("[‐‑‒–—−]+", "-", folded)
    folded = re.sub("[‘’“”\"'«»„`*]", "", folded)
    return " ".join(folded.split()).replace(" -", "-").replace("- ", "-").lower()


def _neighbours(rnd: random.Random, own: str) -> tuple[Passage, ...]:
    chosen = [own, *rnd.sample(texts(), 5)]
    chosen = list(dict.fromkeys(chosen))
    rnd.shuffle(chosen)
    return tuple(
        passage(f"c{number}#0", text, path=f"d{number}.md") for number, text in enumerate(chosen)
    )


# Tampering: each takes a generator and the text of a passage, and returns the tampered quote or
# nothing if the text has no place for it.

Tamper = Callable[[random.Random, str], str | None]
_AUXILIARY = r"\b(is|are|was|were|must|may|can|should|will|has|have|does|do)\b"
_HOMOGLYPHS = dict(zip("aeopcix01", "аеорсіхOl", strict=True))
_EXTRA = "not never only almost hardly no allegedly twice Berlin 7".split()


def _with(
    pattern: str, change: Callable[[random.Random, re.Match[str]], str], flags: int = 0
) -> Tamper:
    """Tamper with a match of a pattern in a sentence."""

    def tamper(rnd: random.Random, text: str) -> str | None:
        sentences = [s for s in _sentences(text) if re.search(pattern, s, flags)]
        if not sentences:
            return None
        sentence = rnd.choice(sentences)
        match = rnd.choice(list(re.finditer(pattern, sentence, flags)))
        return sentence[: match.start()] + change(rnd, match) + sentence[match.end() :]

    return tamper


def _change_digit(rnd: random.Random, match: re.Match[str]) -> str:
    number = match[0]
    at = rnd.choice([i for i, c in enumerate(number) if c.isdigit()])
    return number[:at] + rnd.choice([d for d in "123456789" if d != number[at]]) + number[at + 1 :]


def _skip_sentence(rnd: random.Random, text: str) -> str | None:
    """Two sentences without the one between them, and without an ellipsis."""
    sentences = _sentences(text)
    if len(sentences) < 3:
        return None
    at = rnd.randrange(0, len(sentences) - 2)
    return f"{sentences[at]} {sentences[at + 2]}"


_NUMBER = r"(?<![\w.,])\d[\d.,]*\d|(?<![\w.,])\d"
TAMPERINGS: dict[str, Tamper] = {
    "negation in": _with(_AUXILIARY, lambda _, m: f"{m[0]} not"),
    "negation out": _with(r"\b(?:not|never|no) |n['’]t\b|(?<=can)not\b", lambda _, m: "", re.IGNORECASE),
    "digit": _with(_NUMBER, _change_digit),
    "homoglyph": _with(f"[{''.join(_HOMOGLYPHS)}]", lambda _, m: _HOMOGLYPHS[m[0]]),
    "word out": _with(r"(?<= )\S+ (?=\S)", lambda _, m: ""),
    "word in": _with(r" (?=\S)", lambda rnd, _: f" {rnd.choice(_EXTRA)} "),
    "words transposed": _with(r"(\S+) (\S+)", lambda _, m: f"{m[2]} {m[1]}"),
    "sentence out": _skip_sentence,
}  # fmt: skip


def _passage(rnd: random.Random) -> str:
    return rnd.choice(texts() if rnd.random() < 0.8 else OWN_TEXTS)


def tampered(rnd: random.Random) -> Iterator[Case]:
    """Drafts whose quote must not pass, without end; all kinds in turn."""
    while True:
        for kind in (*TAMPERINGS, "misattribution"):
            case = None
            while case is None:
                case = _tampered(rnd, kind)
            yield case


def _tampered(rnd: random.Random, kind: str) -> Case | None:
    own = _passage(rnd)
    passages = _neighbours(rnd, own)
    if kind == "misattribution":
        quote = rnd.choice(_sentences(own))
        others = [other for other in passages if plain(quote) not in plain(other.content)]
        return Case(kind, in_a_draft(rnd, quote), passages, (others[0],), "") if others else None
    changed = TAMPERINGS[kind](rnd, own)
    if not changed or len(changed.split()) < 3 or plain(changed).strip(" .,") in _all_texts():
        return None
    return Case(kind, in_a_draft(rnd, changed), passages, (), "")


# Honest variants

Vary = Callable[[random.Random, str], str]


def _sometimes(rnd: random.Random, text: str, old: str, new: list[str]) -> str:
    return "".join(rnd.choice(new) if c in old and rnd.random() < 0.7 else c for c in text)


VARIATIONS: dict[str, Vary] = {
    "apostrophes": lambda r, t: _sometimes(r, t, "'’‘", ["'", "’", "ʼ"]),
    "dashes": lambda r, t: re.sub(r"(?<=\s)[–—-](?=\s)", lambda _: r.choice(["–", "—", "-", "--"]), re.sub(r"(?<=\w)[-‑–](?=\w)", lambda _: r.choice(["-", "‑", "–", "‐"]), t)),
    "spaces": lambda r, t: _sometimes(r, t, " ", ["\u00a0", "\u2009", "\u202f", "  ", "\t", "\u3000"]),
    "line breaks": lambda r, t: _sometimes(r, t, " ", ["\n", " ", " ", "\r\n"]),
    "NFD": lambda _, t: unicodedata.normalize("NFD", t),
    "first letter": lambda _, t: t[0].swapcase() + t[1:],
    "ellipses": lambda _, t: "… " + t + " …",
    "emphasis": lambda r, t: re.sub(r"(?<=\s)([a-z]{4,})(?=\s)", lambda m: f"*{m[1]}*" if r.random() < 0.1 else m[1], t),
}  # fmt: skip


def honest(rnd: random.Random) -> Iterator[Case]:
    """Drafts with a true quote in other typography, without end; all kinds in turn."""
    while True:
        for kind, vary in VARIATIONS.items():
            own = _passage(rnd)
            sentences = _sentences(own)
            quote = rnd.choice(sentences)
            both = " ".join(" ".join(sentences[:2]).split())
            blocks = [" ".join(block.split()) for block in own.split("\n\n")]
            if rnd.random() < 0.3 and any(both in block for block in blocks):
                quote = both
            words = vary(rnd, quote)
            if rnd.random() < 0.5:
                words = rnd.choice([*VARIATIONS.values()][:4])(rnd, words)
            passages = _neighbours(rnd, own)
            cited = [source for source in passages if source.content == own and rnd.random() < 0.5]
            yield Case(kind, in_a_draft(rnd, words), passages, tuple(cited), quote)


def in_a_draft(rnd: random.Random, quote: str) -> str:
    """A draft with the quote in one of many styles, in marks that do not end inside it."""
    if rnd.random() < 0.15:
        return "As the guide says:\n\n> " + "\n> ".join(re.split(r"\r\n|\n", quote))
    inner = re.sub("[“«]", "‘", re.sub("[”»]", "’", quote))
    styles = ["„{}“ Then it ends.", "« {} », and ends.", "「{}」 here.", "“{}” and ends."]
    if not re.search("[‘’'ʼ\"]", inner):
        styles.append('"{}", and ends.')
    return "The guide says " + rnd.choice(styles).replace("{}", inner)
