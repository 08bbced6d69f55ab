"""Figures in several notations, in sentences of evidence and of drafts, from a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

MONTHS = (
    "January February March April May June July August September October November December".split()
)
_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "_ first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
)


@dataclass(frozen=True)
class Case:
    """A value in the notation of the evidence and in another one; and another value."""

    kind: str
    evidence: str
    draft: str
    changed: str


def in_words(number: int) -> str:
    if number < 20:
        return _SMALL_NUMBERS[number]
    if number < 100:
        tens, units = divmod(number, 10)
        return _TENS[tens] + (f"-{_SMALL_NUMBERS[units]}" if units else "")
    if number < 1000:
        hundreds, remainder = divmod(number, 100)
        return f"{_SMALL_NUMBERS[hundreds]} hundred" + (
            f" and {in_words(remainder)}" if remainder else ""
        )
    thousands, remainder = divmod(number, 1000)
    return f"{in_words(thousands)} thousand" + (f" {in_words(remainder)}" if remainder else "")


def _count(n: int) -> list[str]:
    forms = [str(n), f"{n:,}", in_words(n)]
    if n >= 1000:
        forms += [
            f"{n:,}".replace(",", " "),
            f"{n:,}".replace(",", "\u202f"),
            f"{n:,}".replace(",", "'"),
        ]
    if n >= 1000 and n % 100 == 0:
        forms += [f"{n / 1000:g}k", f"{n / 1000:g} thousand", f"{n / 1000:g}K"]
    return forms


def _millions(n: int) -> list[str]:
    return [f"{n / 10:g} million", f"{n * 100_000:,}", str(n * 100_000), f"{n / 10:g}M"]


def _money(n: int) -> list[str]:
    return [
        f"${n:,}",
        f"${n}",
        f"USD {n:,}",
        f"{n:,} dollars",
        f"{n} USD",
        f"US${n:,}",
        f"${n:,}.00",
    ]


def _money_millions(n: int) -> list[str]:
    m = f"{n / 10:g}"
    return [
        f"€{m}M",
        f"€{m} million",
        f"{m} million euros",
        f"EUR {n * 100_000:,}",
        f"{m}m EUR",
        f"€{m}m",
    ]


def _percent(n: int) -> list[str]:
    return [f"{n}%", f"{n} %", f"{n} percent", f"{n} per cent", f"{in_words(n)} percent", f"{n}.0%"]


def _duration(n: int) -> list[str]:
    quarter = n * 15
    hours, minutes = divmod(quarter, 60)
    forms = [
        f"{quarter} minutes",
        f"{quarter} min",
        f"{quarter / 60:g} hours",
        f"{quarter * 60} seconds",
    ]
    if hours and minutes:
        forms += [f"{hours}h{minutes:02d}", f"{hours} h {minutes} min", f"{hours}h {minutes}m"]
        forms += [f"{hours} {'hour' if hours == 1 else 'hours'} and {minutes} minutes"]
    return forms


def _days(n: int) -> list[str]:
    return [f"{n} days", f"{in_words(n)} days", f"{24 * n} hours", f"{n}-day", f"{n}d"]


def _weeks(n: int) -> list[str]:
    return [f"{n} weeks", f"{7 * n} days", f"{in_words(n)} weeks"]


def _years(n: int) -> list[str]:
    return [f"{n} years", f"{12 * n} months", f"{in_words(n)} years", f"{n}-year"]


def _size(n: int) -> list[str]:
    return [f"{n} GB", f"{n}GB", f"{1000 * n} MB", f"{n * 1000:,} MB", f"{n} gigabytes"]


def _binary_size(n: int) -> list[str]:
    return [f"{n} GiB", f"{1024 * n} MiB", f"{n}GiB"]


def _length(n: int) -> list[str]:
    return [
        f"{n} km",
        f"{1000 * n} m",
        f"{n} kilometres",
        f"{n * 1000:,} metres",
        f"{n} kilometers",
    ]


def _mass(n: int) -> list[str]:
    return [f"{n} kg", f"{n}kg", f"{1000 * n} g", f"{n} kilograms"]


def _date(n: int) -> list[str]:
    year, month, day = 2000 + n % 60, n % 12 + 1, n % 15 + 13
    end = {21: "st", 22: "nd", 23: "rd"}.get(day, "th")
    name = MONTHS[month - 1]
    return [
        f"{day} {name} {year}", f"{name} {day}, {year}", f"{year}-{month:02d}-{day:02d}",
        f"{day}{end} of {name} {year}", f"{name} {day}{end}, {year}", f"{day} {name[:3]} {year}",
        f"{day:02d}/{month:02d}/{year}", f"{month:02d}/{day:02d}/{year}", f"{day:02d}.{month:02d}.{year}",
        f"{year}/{month:02d}/{day:02d}", f"{name[:3]}. {day}, {year}", f"{day}-{name[:3]}-{year}",
    ]  # fmt: skip


def _month(n: int) -> list[str]:
    year, month = 2000 + n % 60, n % 12 + 1
    return [f"{MONTHS[month - 1]} {year}", f"{MONTHS[month - 1][:3]} {year}", f"{year}-{month:02d}"]


def _time(n: int) -> list[str]:
    hour, minute = n % 11 + 13, n % 50 + 10
    return [f"{hour}:{minute}", f"{hour - 12}:{minute} pm", f"{hour - 12}.{minute} p.m.",
            f"{hour - 12}:{minute}PM", f"{hour}h{minute}", f"{hour}:{minute}:00"]  # fmt: skip


def _ordinal(n: int) -> list[str]:
    number = n % 11 + 2
    end = {2: "nd", 3: "rd"}.get(number, "th")
    return [f"{number}{end}", _ORDINALS[number]]


def _version(n: int) -> list[str]:
    number = f"{n % 9 + 1}.{n % 30}.{n % 7}"
    return [f"v{number}", number, f"version {number}", f"V{number}"]


def _negative(n: int) -> list[str]:
    return [f"-{n} °C", f"−{n} °C", f"minus {n} degrees Celsius", f"-{n}°C"]


def _half(n: int) -> list[str]:
    return [f"{n}.5 hours", f"{n}½ hours", f"{n} 1/2 hours", f"{in_words(n)} and a half hours"]


def _third(n: int) -> list[str]:
    share = f"{n % 9 + 1}/{n % 9 + 2}"
    names = {"1/2": "half", "2/3": "two thirds", "3/4": "three quarters", "4/5": "four fifths"}
    return [f"{share} of", f"{names[share]} of"] if share in names else [f"{share} of"] * 2


def _range(n: int) -> list[str]:
    m = n + 7
    return [f"{n}–{m} days", f"{n} to {m} days", f"{n}-{m} days", f"between {n} and {m} days"]


def _rate(n: int) -> list[str]:
    return [f"${n} per month", f"${n}/month", f"${n} a month", f"{n} dollars per month"]


def _identifier(n: int) -> list[str]:
    number = 1000 + n % 9000
    return [f"RFC {number}", f"RFC{number}", f"RFC-{number}", f"rfc {number}"]


def _url(n: int) -> list[str]:
    return [f"https://example.org/page/{n}", f"https://example.org/page/{n}/", f"https://EXAMPLE.org/page/{n}",
            f"<https://example.org/page/{n}>", f"[page](https://example.org/page/{n})"]  # fmt: skip


def _mail(n: int) -> list[str]:
    return [f"user{n}@example.org", f"User{n}@Example.org", f"mailto:user{n}@example.org"]


def _hash(n: int) -> list[str]:
    digest = f"{random.Random(n).getrandbits(160):040x}"
    return [digest, digest[:9], digest.upper(), f"`{digest[:12]}`"]


def _address(n: int) -> list[str]:
    address = f"10.{n % 250}.{n % 90}.{n % 200}"
    return [address, f"`{address}`", f"({address})"]


def _code(n: int) -> list[str]:
    return [f"CVE-2024-{n + 1000}", f"cve-2024-{n + 1000}", f"(CVE-2024-{n + 1000})"]


def _cents(n: int) -> list[str]:
    return [f"{n:,}.50 euros", f"€{n:,}.5", f"EUR {n}.50"]


# Kind → notations of a value, the range of values, templates of the evidence and of the draft.
_KINDS: dict[str, tuple[Callable[[int], list[str]], tuple[int, int], str, str]] = {
    "count": (_count, (2, 9999), "The plant employs {} people.", "It has {} people on its staff."),
    "hundreds": (lambda n: _count(100 * n), (11, 99), "It sold {} units.", "There were {} units sold."),
    "millions": (_millions, (11, 99), "The city has {} inhabitants.", "About {} inhabitants live there."),
    "money": (_money, (100, 9999), "The licence costs {} in all.", "The price is {} in total."),
    "money in millions": (_money_millions, (11, 99), "Sales were {} last year.", "It sold for {} last year."),
    "percent": (_percent, (2, 99), "The share is {} of all.", "They hold {} of it."),
    "duration": (_duration, (2, 40), "The test takes {} in all.", "It needs {} to run."),
    "days": (_days, (2, 99), "There is a {} limit.", "The limit is {} long."),
    "weeks": (_weeks, (2, 40), "It is kept for {} or so.", "They keep it {} here."),
    "years": (_years, (2, 40), "The term is {} at most.", "It has a term of {} there."),
    "size": (_size, (2, 90), "The disk holds {} of data.", "It stores {} of files."),
    "binary size": (_binary_size, (2, 90), "The disk holds {} of data.", "It stores {} of files."),
    "length": (_length, (2, 90), "The road is {} long.", "They built {} of road."),
    "mass": (_mass, (2, 90), "The box weighs {} today.", "It has {} of mass."),
    "date": (_date, (0, 719), "It opened on {} in Oslo.", "The opening was on {} there."),
    "month": (_month, (0, 719), "It opened in {} there.", "The opening was in {} at last."),
    "time": (_time, (0, 99), "The bus leaves at {} each day.", "It departs at {} every day."),
    "ordinal": (_ordinal, (0, 10), "This is the {} edition of it.", "They read the {} edition."),
    "version": (_version, (0, 999), "The bug was fixed in {} at last.", "It works since {} again."),
    "negative": (_negative, (2, 90), "The freezer is at {} all day.", "It keeps {} inside."),
    "half": (_half, (2, 20), "The trip takes {} by car.", "They drove {} there."),
    "third": (_third, (1, 3), "The law needs {} the votes.", "It takes {} the votes."),
    "range": (_range, (2, 80), "Delivery takes {} by post.", "It comes in {} by post."),
    "rate": (_rate, (2, 900), "The plan costs {} for teams.", "Teams pay {} for it."),
    "identifier": (_identifier, (0, 8999), "The format is in {} today.", "They follow {} here."),
    "url": (_url, (1, 9999), "The text is at {} online.", "See {} for it."),
    "mail": (_mail, (1, 9999), "Write to {} for help.", "The contact is {} there."),
    "hash": (_hash, (1, 9999), "The fix is {} on main.", "It was fixed by {} there."),
    "address": (_address, (1, 999), "The host is {} inside.", "It runs on {} there."),
    "code": (_code, (1, 8999), "The flaw is {} in short.", "It fixes {} there."),
    "cents": (_cents, (100, 999), "The fee was {} for all.", "They paid {} for all."),
}  # fmt: skip
_DISTRACTORS = (
    "The office opened with 3 rooms and 41 desks.",
    "A survey of 1,871 members ended on 9 November 1998.",
    "Rent rose by 3.7% to $97,531 after 19 months.",
    "Its server 172.16.4.9 ran 0.13.77 for 11 hours.",
)


def cases(count: int, seed: int) -> list[Case]:
    """So many cases, all kinds in turn."""
    chance = random.Random(seed)
    kinds = list(_KINDS.items())
    result: list[Case] = []
    while len(result) < count:
        kind, (notations, (low, high), evidence, draft) = kinds[len(result) % len(kinds)]
        value = chance.randint(low, high)
        forms = list(dict.fromkeys(notations(value)))
        first = chance.choice(forms)
        second = chance.choice([form for form in forms if form != first] or forms)
        if kind == "hash":
            first = forms[0]  # The draft may shorten it.
        changed = chance.choice(notations(chance.randint(low, high)))
        while changed in forms:
            changed = chance.choice(notations(chance.randint(low, high)))
        before, after = chance.sample(_DISTRACTORS, 2)
        result.append(
            Case(
                kind,
                f"{before} {evidence.format(first)} {after}",
                draft.format(second),
                draft.format(changed),
            )
        )
    return result
