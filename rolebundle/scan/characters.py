"""Tables of invisible characters, of the scripts that need some of them, and of look-alikes.

Sources: Unicode 16 chapter 23 (special areas and format characters), UTS 51 (emoji), UAX 9 (the
bidirectional algorithm), UTR 36 and UTS 39 (security, confusables.txt), and for variation sequences
StandardizedVariants.txt, emoji-variation-sequences.txt and the IVD.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# The characters of plain ASCII text; any other character is examined. Old documentation often has
# form feeds and vertical tabs as white space.
PLAIN = bytes(range(0x20, 0x7F)) + b"\t\n\v\f\r"

CONTROLS = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # U+0085 is a line break.
TAGS = "\U000e0000-\U000e007f"
SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f"
OVERRIDES = "\u202d\u202e"
EMBEDDINGS = "\u202a\u202b\u202c\u2066-\u2069"
MARKS = "\u200e\u200f\u061c"
JOINERS = "\u200c\u200d"
ZERO_WIDTH = "\u200b\u2060\ufeff\u034f\u180e"
OPERATORS = "\u2061-\u2064"
FILLERS = "\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5"
FORMATS = (
    "\u2065\u206a-\u206f\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U0001bca0-\U0001bca3\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
SOFT_HYPHEN = "\u00ad"

# Blocks of the scripts that need joiners: a legitimate joiner is beside a letter or mark of these.
RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_JOINING = (
    "\u0600-\u085f\u0860-\u08ff\ufb50-\ufdff\ufe70-\ufefc"  # Arabic, Syriac, N'Ko, Mandaic
    "\u0591-\u05c7"  # points of Hebrew
    "\u0900-\u0dff"  # Devanagari to Sinhala
    "\u0f00-\u109f\u1780-\u18af\u1900-\u1cff\ua800-\uabff"  # Tibetan, Burmese, Khmer, Mongolian
    "\U00010a00-\U00010a5f\U00010d00-\U00010fff\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff"  # Thai, Lao, Tibetan, Burmese
    "\u1780-\u17ff\u19e0-\u19ff\u1950-\u19df\u1a20-\u1aaf"  # Khmer, Tai
    "\ua980-\ua9df\u1b00-\u1b7f\u1b80-\u1bbf\u1000-\u109f"  # Javanese, Balinese, Sundanese
)
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005-\u3007\U00020000-\U0003ffff"
_PICTOGRAPHS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff"
    "\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)


def _one_of(characters: str) -> Callable[[str], bool]:
    """A test for one of these characters, which an empty text does not pass."""
    pattern = re.compile(f"[{characters}]")
    return lambda character: pattern.match(character) is not None


is_joining = _one_of(_JOINING)
is_unspaced = _one_of(_UNSPACED)
is_pictograph = _one_of(_PICTOGRAPHS)
is_mongolian = _one_of("\u1800-\u18af")
is_jamo = _one_of("\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff")
is_braille = _one_of("\u2801-\u28ff")
is_khmer = _one_of("\u1780-\u17ff")
is_letter_before_hyphen = _one_of(r"\w")

# The characters that each kind of selector may follow.
takes_emoji_selector = _one_of(rf"{_PICTOGRAPHS}0-9#*")
takes_ideographic_selector = _one_of(_IDEOGRAPHS)
is_selector = _one_of(SELECTORS)
takes_other_selector = _one_of(
    rf"{_IDEOGRAPHS}0\u2190-\u2bff\u1000-\u109f\uaa60-\uaa7f\ua840-\ua877\U00010ac0-\U00010aff"
    r"\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f\u2018-\u201d\U00013000-\U0001342f"
)

# Subdivision flags that fonts draw: England, Scotland, Wales, and states that vendors added. If any
# region were accepted, hidden text could pass as flags, six characters at a time.
is_flag = re.compile(
    "(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)"
    "|\U000e0075\U000e0073(?:\U000e0074\U000e0078|\U000e0063\U000e0061))\U000e007f"
).fullmatch
BLACK_FLAG = "\U0001f3f4"

# No registered ideographic sequence has a higher selector.
LAST_REGISTERED_SELECTOR = "\U000e011f"

KINDS = {
    "tag_characters": TAGS,
    "variation_selectors": SELECTORS,
    "bidi_override": OVERRIDES,
    "bidi_control": EMBEDDINGS,
    "directional_mark": MARKS,
    "zero_width": JOINERS + ZERO_WIDTH,
    "invisible_operator": OPERATORS,
    "filler": FILLERS,
    "soft_hyphen": SOFT_HYPHEN,
    "control_character": CONTROLS,
    "format_character": FORMATS,
}
"""The kinds of findings whose characters are removed, and their characters."""
HIDDEN = "".join(KINDS.values())
"""Every invisible character; a run of them is judged as a whole."""

# Look-alikes: letters that common fonts draw like a Latin one.

_CYRILLIC = dict(
    zip("АВЕЅІЈКМНОРСТУХҮԜԌЗаеіјорсухѕһԁԛԝѵүӏ", "ABESIJKMHOPCTYXYWG3aeijopcyxshdqwvyl", strict=True)
)
_GREEK = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳοαγικνρυχϲετηω", "ABEZHIKMNOPTYXCjoayikvpuxcetnw", strict=True))
_ARMENIAN_AND_CHEROKEE = dict(
    zip("ՕՏՍԼօոսհցզքյᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃᏀ", "OSULonuhgqfjABCDEHJKLMPRSTVWZG", strict=True)
)
LOOK_ALIKES = {**_CYRILLIC, **_GREEK, **_ARMENIAN_AND_CHEROKEE}
"""Maps a letter to the Latin letter that it looks like in common fonts."""
del LOOK_ALIKES["З"]  # It looks like the digit 3, which is in no Latin word.

TO_LATIN = str.maketrans(LOOK_ALIKES)
# In Cyrillic words the Latin letter is out of place.
TO_CYRILLIC = str.maketrans({latin: own for own, latin in _CYRILLIC.items() if latin != "3"})

_LATIN_LETTERS = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_CYRILLIC_LETTERS = "\u0400-\u0481\u048a-\u052f\u1c80-\u1c8f"
_GREEK_LETTERS = "\u0370-\u03ff\u1f00-\u1fff"
_OTHER_LETTERS = "\u0531-\u0556\u0561-\u0587\u13a0-\u13f5\u13f8-\u13fd"
_FOREIGN_LETTERS = _CYRILLIC_LETTERS + _GREEK_LETTERS + _OTHER_LETTERS
_ACCENTS = "\u0300-\u036f"
# Letters that resemble a Latin one only in small print, and that formulas use beside Latin letters.
FORMULA_LETTERS = frozenset("αγικνρυχετηω")
FORMULA_SUBSCRIPTS = frozenset(
    "max min eff ref tot avg rel crit obs ray rays sat exp low high opt est ext syn tub".split()
)

FOREIGN_LETTER = re.compile(f"[{_FOREIGN_LETTERS}]")
"""A letter of a script that has look-alikes of Latin letters."""
# The search starts at a foreign letter: they are rare, and searching for one class is fast.
SCRIPT_BOUNDARY = re.compile(
    f"[{_FOREIGN_LETTERS}](?:(?<=[{_LATIN_LETTERS}{_ACCENTS}].)|[{_ACCENTS}]*[{_LATIN_LETTERS}])"
)
"""The place in a word where two scripts meet. Every word of two scripts has one."""
WORD = re.compile(f"[{_LATIN_LETTERS}{_FOREIGN_LETTERS}{_ACCENTS}]+")
GREEK_LETTER = re.compile(f"[{_GREEK_LETTERS}]")
LATIN_RUN = re.compile(f"[{_LATIN_LETTERS}]+")
LATIN_LIKE_CYRILLIC = frozenset("ABESIJKMHOPCTYXaeijopcyxs")
