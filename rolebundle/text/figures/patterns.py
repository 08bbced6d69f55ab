"""The patterns with which figures are read, and what a language adds to them."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from rolebundle.text.figures.quantities import LANGUAGES, UNITS_BY_NAME, Words, words_of
from rolebundle.text.stop_words import NUMBER_WORDS, STOP_WORDS
from rolebundle.text.words import stem

# -- characters ------------------------------------------------------------------------------------


class Plain(dict[int, str]):
    """Replaces one character by one: digits of all scripts, spaces, dashes, full width."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        digit = unicodedata.decimal(character, None)
        if digit is not None:
            character = str(digit)
        elif 0xFF01 <= code <= 0xFF5E:
            character = chr(code - 0xFEE0)
        elif unicodedata.category(character) == "Zs":
            character = " "
        self[code] = character
        return character


PLAIN = Plain(
    dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212, 0xFE63), "-")
    | dict.fromkeys((0x2018, 0x2019, 0x02BC), "'")
    | {0x130: "I", 0x2044: "/", 0xD7: "×"}
)
FRACTIONS = {
    character: Fraction(unicodedata.numeric(character)).limit_denominator(10)
    for character in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

# -- patterns: addresses, identifiers --------------------------------------------------------------

# Where a figure may begin: a word, digits, what paths and addresses contain.
TRIGGER = re.compile(r"[^\W\d_]+|\d+|[¼½¾⅐-⅞∞]|[/\\@_#]|\.(?=[a-z\d])")
# Characters that do not belong to an address or an identifier.
OUTSIDE = frozenset(" \t\n\r\v\f\x85()[]{}<>\"'“”„«»‹›`*|,;=!?…—")
CHUNK = re.compile(r"[^\s()\[\]{}<>\"'“”„«»‹›`*|,;=!?…—]+")
CURRENCY = r"us\$|a\$|au\$|c\$|ca\$|nz\$|hk\$|s\$|r\$|[$€£¥₹₩₽₿¢]|rs\.?"
CURRENCY_CODES = "usd eur gbp jpy cny rmb inr chf aud cad nzd hkd sgd krw brl sek nok dkk pln btc"
CODES = "|".join(CURRENCY_CODES.split())
TLD = r"(?:com|org|net|io|dev|edu|gov|ai|app|info|eu|uk|de|fr|ch|nl|it|es|local|test|example)"
SUFFIXES = (
    r"(?:py|js|ts|tsx|rs|go|c|h|cpp|java|rb|sh|sql|md|rst|txt|json|jsonl|toml|yaml|yml|xml|html|css"
    r"|csv|ini|cfg|conf|env|log|lock|pdf|docx?|xlsx?|pptx?|png|jpe?g|svg|zip|gz|tar|db|sqlite|exe)"
)
URL = re.compile(r"(?:(?:https?|ftps?|sftp|ssh|git|file|s3|wss?)://|www\.)[^\s<>\"`|\]}]+")
MAIL = re.compile(r"(?:mailto:)?([\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})\b")
HOST = re.compile(rf"(?:[a-z\d-]+\.)+{TLD}\b(?::\d+)?(?:/[^\s<>\"`|\]}})]*)?")
PATH = re.compile(
    r"(?:[a-z]:[\\/]|~/|\.{1,2}[\\/]|/)?(?:[\w.@+-]+[\\/])*[\w.@+-]*\w[\\/]?(?::\d+(?:-\d+)?)?",
    re.IGNORECASE,
)
FILE = re.compile(rf"[\w-][\w.-]*\.{SUFFIXES}\b(?::\d+(?:-\d+)?)?", re.IGNORECASE)
IP = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?)(?!\.?\w)")
IP6 = re.compile(r"(?=[\da-f:]*::|(?:[\da-f]+:){7})([\da-f:]*[\da-f](?:/\d+)?)(?!\w)")
MAC = re.compile(r"([\da-f]{2}([:-])[\da-f]{2}(?:\2[\da-f]{2}){4})(?!\w)")
UUID = re.compile(r"([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?!\w)")
HASH = re.compile(
    r"(?:(?:sha-?\d+|md5|blake\w+)[:-])?((?=\d*[a-f])(?=[a-f]*\d)[\da-f]{7,128})(?!\w)"
)
DOI = re.compile(r"(?:doi:\s?)?(10\.\d{4,9}/[^\s<>\"`|\]}]*\w)")
PHONE = re.compile(r"(\+\d(?:[ ()./-]{0,2}\d){6,14})(?!\d)")
VERSION = re.compile(
    r"(v(?:ersion|er\.?)?[ .]?)?"
    r"(\d+(?:\.\d+)*(?:\.[x*])?(?:[.-]?(?:rc|alpha|beta|dev|pre|post|snapshot|final)"
    r"[.-]?\d*|[ab]\d+)?(?:\+\w+(?:\.\w+)*)?)(?![\w.]*\w)"
)
CONSTANT = re.compile(r"[A-Z][A-Z\d]*(?:_[A-Z\d]+)+(?!\w)")
IDENTIFIER = re.compile(r"#?[a-z]\w*(?:[-_/.:#]\w+)*|\d[\w-]*[a-z]\w*")
HEX = re.compile(r"0x([\da-f]{1,40})(?!\w)")
DURATION = re.compile(
    r"p(?=[\dt])(?:(\d+)y)?(?:(\d+)m)?(?:(\d+)w)?(?:(\d+)d)?"
    r"(?:t(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?(?!\w)"
)
DURATION_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
TRAILING = ".,;:!?'\"…"

# -- patterns: times and numbers ------------------------------------------------------------------

ZONE = r"(?: ?(?P<zone>utc|gmt|z|cest|cet|bst|est|edt|cst|cdt|mst|mdt|pst|pdt|jst|ist)\b)?"
CLOCK = re.compile(
    r"(?P<h>[01]?\d|2[0-4])(?P<sep>[:.h])(?P<m>[0-5]\d)(?!\d)(?:[:.](?P<s>[0-5]\d)(?:[.,]\d+)?)?"
    r"(?: ?(?P<half>[ap])\.?m\b\.?)?(?: ?(?P<uhr>uhr|o'clock|hrs?|h)\b)?"
    rf"{ZONE}(?P<offset>[+-]\d\d:?\d\d)?(?![\d:])"
)
HOUR = re.compile(
    rf"(?P<h>1?\d|2[0-4])(?: ?(?P<half>[ap])(?:\.m\.|m\b)| ?(?P<uhr>o'clock|uhr\b)){ZONE}"
)
RATIO = re.compile(r"\d+(?::\d+)+(?![\w:])")
NUMBER = re.compile(
    r"(?P<grouped>\d{1,3}(?P<g>[ '_])\d{3}(?:(?P=g)\d{3})*(?!\d)(?:[.,]\d+)?)"
    r"|(?P<us>\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)(?:\.\d+)?)"
    r"|(?P<eu>\d{1,3}(?:\.\d{3})+(?!\d)(?:,\d+)?)"
    r"|(?P<decimal>\d+[.,]\d+)"
    r"|(?P<half>\.\d+)"
    r"|(?P<whole>\d+)"
)
POWER = re.compile(r" ?[×x*·] ?10(?:(?:\^\(?|\*\*)(-?\d{1,2})\)?|([⁻⁰¹²³⁴-⁹]{1,3}))")
EXPONENT = re.compile(r"e([+-]?\d{1,2})(?![\w.])")
MIXED = re.compile(r"(?: ?([¼½¾⅐-⅞])|[ -](\d{1,2})/(\d{1,3})(?![\w/]))")
SLASH = re.compile(r"/(\d{1,3})(?![\w/.,]\w|\w|/)")
AND_A_HALF = re.compile(r"(?: and (?:a |one )?(half|quarter|third)| and three (quarters))\b")
GAP_WORD = re.compile(r"( ?-? ?)([^\W\d_][\w'’]*)")
SIGN = re.compile(r" ?(%|‰|°[cf]?\b|[$€£¥₹₩₽₿¢]|µ[a-z]+|μ[a-z]+|[a-z]+[²³]|×|\")")
PER = re.compile(
    r"(?: ?/ ?| per | a | an | each | every | pro | par | por | al | à l'|p\. ?)([^\W\d_]+)"
)
EVERY = re.compile(r"\b(?:every|per|alle|tous les|toutes les|cada|ogni|elke|om de) $")
RECURRING = frozenset(
    "interval intervals cycle cycles cadence frequency recurring periodically rotation rotations"
    " intervall abstand intervalle fréquence intervalo frecuencia frequência intervallo frequenza"
    " interval frequentie".split()
)
"""Words that make a length of time the time between two events, as "every" does."""
PERIODS = {
    "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter",
    "annually": "year", "yearly": "year", "annual": "year",
}  # fmt: skip
RANGE_GAP = re.compile(
    r"\s*(?:-|/|–|—|\.\.\.?|,|,? ?(?:and|or|to|through|until|till|up to|versus|vs\.?|by|×|x|±"
    r"|bis|und|oder|et|ou|à|a|y|o|e|tot|en))\s*"
)
SKIPPED = frozenset(
    "consecutive full whole more additional extra further entire other total straight calendar new "
    "last next first past".split()
)
PREFIXES = frozenset(("mid-", "pre-", "post-", "early-", "late-", "non-"))
TENS_OF_YEARS = re.compile(r"((?:1[0-9]|20)\d0)'?s\b|'(\d0)s\b")
QUARTER = re.compile(r"(?:([qh])([1-4])[ /-]?(?:of )?(\d{4})|(\d{4})[ /-]?([qh])([1-4]))(?!\w)")
FISCAL = re.compile(r"fy ?-?'?(\d{4}|\d\d)(?!\w)")
OUT_OF = re.compile(r" (?:in|out of) (?:every )?(\w+)(?![\w.,]\w)")
TIMES = {
    "once": 1, "twice": 2, "thrice": 3, "double": 2, "doubled": 2, "doubles": 2, "triple": 3,
    "tripled": 3, "triples": 3, **{f"{word}fold": int(n) for word, n in NUMBER_WORDS.items()},
}  # fmt: skip
DECADES = {
    "thirties": 1930, "forties": 1940, "fifties": 1950, "sixties": 1960, "seventies": 1970,
    "eighties": 1980, "nineties": 1990,
}  # fmt: skip
RATES = {
    "mph": ("mile", "hour"), "kph": ("km", "hour"), "kmh": ("km", "hour"),
    "kbps": ("kbit", "second"), "mbps": ("mbit", "second"), "gbps": ("gbit", "second"),
}  # fmt: skip
SHARES = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourths": 4,
    "fifth": 5, "fifths": 5, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10,
}  # fmt: skip
NEGATIVE = ("minus ", "negative ")
WORK_BEFORE = re.compile(r"(?:^|[.!?:;]\s+|\n\s*(?:[-*•+|#>]+\s*)?)$")
ISO_DATE = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d|[-/.]\d)")
NUMERIC_DATE = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|(?<=[/])\d\d)(?!\d|[-/.]\d)")
COMPACT_DATE = re.compile(r"((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?![\w.])")
YEAR_MONTH = re.compile(r"((?:19|20)\d\d)-(0[1-9]|1[0-2])(?![\w-])")
MONTH_YEAR = re.compile(r"(0?[1-9]|1[0-2])/((?:19|20)\d\d)(?![\w/])")
AFTER_MONTH = re.compile(r"\.?,?[ -](?:of |de |del )?(\d{4}|'\d\d)(?![\d:]|[.,]\d)")
PART_OF_YEAR = re.compile(r" (quarter|half) (?:of |in )?(\d{4})(?!\w)")
ORDINAL_END = re.compile(r"(?:st|nd|rd|th|er|ère|º|ª)(?![\w])")
SHARE_AFTER = re.compile(rf"[ -]({'|'.join(sorted(SHARES, key=len, reverse=True))})\b")
OWN_POWER = re.compile(r"(?:\^\(?|\*\*)(-?\d{1,2})\)?|([⁻⁰¹²³⁴-⁹]{1,3})")
SPELLED = re.compile(r"[ -]?([^\W\d_]+)(?![’'][a-z])")
POINT = re.compile(r" point((?: (?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b)+)")
SCALE_WORD = re.compile(r"([ -]?)([^\W\d_]+\b\.?)")
ONE_MORE = re.compile(r"[ -]([^\W\d_]+)\b")
TWO_MORE = re.compile(r"[ -]([^\W\d_]+)[ -]([^\W\d_]+)\b")
PERIOD = re.compile(rf" ({'|'.join(PERIODS)})\b")
CURRENCY_BEFORE = re.compile(rf"(?<![a-z])({CURRENCY}|{CODES}) ?[-+]?$")
MORE = re.compile(r"(?:,? (?:and|und|et|y|e|en) |, ?| ?)(?=[^\W_])")
BEFORE_MONTH = frozenset(
    "in by until since from before after during every of each early mid late through to between "
    "last next this and or".split()
)
BEFORE_LENGTH = frozenset(
    "in within after for than least most about lasts takes under over to every exactly".split()
)
CODE_NOUNS = frozenset(map(stem, "error status code response exception".split()))
BEFORE_ONE = frozenset("no any this that each every the which another only a an".split())
DETERMINERS = frozenset("the a an its our their his her this that every each my your".split())
FIRST_WORDS = frozenset(name.split(" ")[0] for name in UNITS_BY_NAME if " " in name)
# No unit, scale or noun begins with these.
NO_UNIT = frozenset(("", *',.;:!?)]}|\n"*/'))
# What follows a number and neither is its unit nor what it counts.
BLOCKING = frozenset("is are was were has have had will and or of in on at by for to if as".split())
# Units that may follow a word that is no unit: "5 sunny days".
LENGTHS = frozenset(
    "seconds minutes hours days weeks months years second minute hour day week month year".split()
)
PAST_HOUR = re.compile(r"(half|quarter) (past|to) (?:([a-z]+)|(\d\d?))\b")
DATE_WORDS = "of de di d to and or bis und au al y e et".split()
TIME_WORDS = frozenset("am pm a p o uhr".split())
# What a power, or a fraction behind a number, begins with; after a space as well.
AFTER_DIGITS = frozenset("0123456789×x*·^⁻⁰¹²³⁴⁵⁶⁷⁸⁹e/-").union(FRACTIONS)
SHORT_VERSION = re.compile(r"\d+\.\d+")
GROUPED = re.compile(r"\d[\d.,]*[.,]\d{3}")
OLD = (" old", "-old", " of age")
OF_UNIT = re.compile(r" (?:of )?an? ")
CURRENCY_ENDS = frozenset("$€£¥₹₩₽₿¢.-+dryfkpnbs")
MAX_CHUNK, MAX_URL = 100, 2000
"""Longer identifiers and addresses are cut."""
MAX_DIGITS = 60
"""Longer numbers are compared as text."""
# A whole number after these words names a version.
VERSIONED = frozenset("version versions release releases ver v".split())
NO_LABEL = frozenset("the a an in on at of by for to and or with from than over under".split())


class Grammar(NamedTuple):
    """What a language adds: its words, and patterns of dates with its months."""

    words: Words
    triggers: frozenset[str]
    date_words: frozenset[str]
    stop_words: frozenset[str]
    articles: frozenset[str]
    day_month: re.Pattern[str]
    month_day: re.Pattern[str]
    year_month_day: re.Pattern[str]
    ordinal_month: re.Pattern[str]


# Bounded, because a document may declare any language.
@lru_cache(maxsize=64)
def grammar(language: str) -> Grammar:
    """What a language adds; English for a language without number words."""
    words = words_of(language if language in LANGUAGES else "en")
    month = "|".join(sorted(words.months, key=len, reverse=True))
    ordinals = "|".join(sorted(words.ordinals, key=len, reverse=True)) or "(?!)"
    year = r"(?:,? ?(?:de |del |of |\|)?(?P<year>\d{4}|'\d\d)(?![\d:]|[.,]\d))?"
    end = r"(?:st|nd|rd|th|er|º|ª|e|\.)?"
    day = rf"(?P<day>0?[1-9]|[12]\d|3[01]){end}"
    last = rf"(?:(?: ?- ?| to | and | or | bis | und | au | al | y | e | et )(?P<last>\d\d?){end})?"
    by_number = {"en": ("a", "an"), "de": ("ein", "eine", "einen", "einem", "einer", "eines")}
    articles = by_number.get(language) or tuple(
        word for word, value in words.numbers.items() if value == 1
    )
    return Grammar(
        words,
        frozenset(
            {
                *words.numbers, *words.scales, *words.ordinals, *words.months, *words.weekdays,
                *articles, *SHARES, *TIMES, *DECADES, "noon", "midnight", "midday",
            }
            - {"k", "m", "b", "t", "mm"}
        ),
        frozenset({*words.months, *DATE_WORDS}),
        STOP_WORDS.get(language, STOP_WORDS["en"]),
        frozenset(articles),
        re.compile(rf"{day}{last}(?: |-|/)?(?:of |de |di |d')?(?P<month>{month})\b\.?[-/]?{year}"),
        re.compile(rf"(?P<month>{month})\b\.?(?: |-)(?:the )?{day}(?![\d:%]|[.,]\d){last}{year}"),
        re.compile(rf"(?P<year>\d{{4}})[ -/](?P<month>{month})\b\.?[ -/]{day}(?!\w)"),
        re.compile(
            rf"(?:(?P<month>{month})\b\.? (?:the )?)?(?P<tens>twenty|thirty)?[ -]?"
            rf"(?P<ordinal>{ordinals})\b(?: (?:day )?(?:of )?(?P<month2>{month})\b\.?)?{year}"
        ),
    )  # fmt: skip
