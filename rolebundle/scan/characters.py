"""Characters that do not show, and the scripts that need some of them.

Sources: Unicode 16 chapter 23 (special areas and format characters), UTS 51 (emoji), UAX 9 (the
bidirectional algorithm), UTR 36 and UTS 39 (security), and for variation sequences
StandardizedVariants.txt, emoji-variation-sequences.txt and the IVD.
"""

from __future__ import annotations

import re

# What a text of plain ASCII is made of; anything that is left over is looked at. Form feeds and
# vertical tabs are white space that old documentation is full of.
PLAIN = bytes(range(0x20, 0x7F)) + b"\t\n\v\f\r"

CONTROLS = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # U+0085 is a line break.
TAGS = "\U000e0000-\U000e007f"
SUPPLEMENT_SELECTORS = "\U000e0100-\U000e01ef"
MONGOLIAN_SELECTORS = "\u180b-\u180d\u180f"
SELECTORS = f"\ufe00-\ufe0f{SUPPLEMENT_SELECTORS}{MONGOLIAN_SELECTORS}"
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

# Everything that may be hidden; a run of it is judged as a whole.
HIDDEN = (
    CONTROLS + TAGS + SELECTORS + OVERRIDES + EMBEDDINGS + MARKS + JOINERS + ZERO_WIDTH + OPERATORS
) + (FILLERS + FORMATS + SOFT_HYPHEN)

# Scripts, by blocks: neighbours of a joiner are letters or marks of them.
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


def _one_of(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{characters}]")


is_joining = _one_of(_JOINING).match
is_unspaced = _one_of(_UNSPACED).match
is_pictograph = _one_of(_PICTOGRAPHS).match
is_mongolian = _one_of("\u1800-\u18af").match
is_jamo = _one_of("\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff").match
is_braille = _one_of("\u2801-\u28ff").match
is_khmer = _one_of("\u1780-\u17ff").match
is_letter_before_hyphen = _one_of(r"\w").match

# What each kind of selector may follow.
takes_emoji_selector = _one_of(rf"{_PICTOGRAPHS}0-9#*").match
takes_ideographic_selector = _one_of(_IDEOGRAPHS).match
is_selector = _one_of(SELECTORS).match
takes_other_selector = _one_of(
    rf"{_IDEOGRAPHS}0\u2190-\u2bff\u1000-\u109f\uaa60-\uaa7f\ua840-\ua877\U00010ac0-\U00010aff"
    r"\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f\u2018-\u201d\U00013000-\U0001342f"
).match

# Subdivision flags that fonts draw: England, Scotland, Wales, and states that vendors added. Any
# other region would let six characters at a time pass for a flag.
is_flag = re.compile(
    "(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)"
    "|\U000e0075\U000e0073(?:\U000e0074\U000e0078|\U000e0063\U000e0061))\U000e007f"
).fullmatch
BLACK_FLAG = "\U0001f3f4"

# Selectors past this one are in no registered ideographic sequence.
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
"""The kinds of findings whose characters are taken out, and their characters."""
