"""Invisible characters, the scripts that need some of them, and look-alikes; see the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rolebundle.resources import data_file

_TABLE = data_file(__file__, "characters.toml")
# The characters of plain ASCII text; any other character is examined. Old documentation often has
# form feeds and vertical tabs as white space.
PLAIN = bytes(range(0x20, 0x7F)) + b"\t\n\v\f\r"

KINDS: Mapping[str, str] = _TABLE["kinds"]
"""The kinds of findings whose characters are removed, and their characters."""
HIDDEN = "".join(KINDS.values())
"""Every invisible character; a run of them is judged as a whole."""
EMBEDDINGS, MARKS = KINDS["bidi_control"], KINDS["directional_mark"]
SOFT_HYPHEN = KINDS["soft_hyphen"]
UNSAFE = "".join(KINDS[kind] for kind in _TABLE["unsafe"].split()).replace("\u200c\u200d", "")
"""Those that hide or reorder text, without the joiners, which scripts need."""

_SCRIPTS: Mapping[str, str] = _TABLE["scripts"]
RTL = _SCRIPTS["rtl"]


def _one_of(characters: str) -> Callable[[str], bool]:
    """A test for one of these characters, which an empty text does not pass."""
    pattern = re.compile(f"[{characters}]")
    return lambda character: pattern.match(character) is not None


is_joining = _one_of(_SCRIPTS["joining"])
is_unspaced = _one_of(_SCRIPTS["unspaced"])
is_pictograph = _one_of(_SCRIPTS["pictographs"])
is_mongolian = _one_of(_SCRIPTS["mongolian"])
is_jamo = _one_of(_SCRIPTS["jamo"])
is_braille = _one_of(_SCRIPTS["braille"])
is_khmer = _one_of(_SCRIPTS["khmer"])
is_letter_before_hyphen = _one_of(r"\w")

# The characters that each kind of selector may follow.
takes_emoji_selector = _one_of(rf"{_SCRIPTS['pictographs']}0-9#*")
takes_ideographic_selector = _one_of(_SCRIPTS["ideographs"])
takes_other_selector = _one_of(_SCRIPTS["ideographs"] + _SCRIPTS["selected"])
is_selector = _one_of(KINDS["variation_selectors"])

# Subdivision flags that fonts draw: England, Scotland, Wales, and states that vendors added. If any
# region were accepted, hidden text could pass as flags, six characters at a time.
_FLAGS = "gbeng gbsct gbwls ustx usca"
is_flag = {
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in _FLAGS.split()
}.__contains__
BLACK_FLAG = "\U0001f3f4"

# No registered ideographic sequence has a higher selector.
LAST_REGISTERED_SELECTOR = "\U000e011f"

# Look-alikes: letters that common fonts draw like a Latin one.

_PAIRS = {name: dict(zip(*letters, strict=True)) for name, letters in _TABLE["look_alikes"].items()}
LOOK_ALIKES = {letter: latin for pairs in _PAIRS.values() for letter, latin in pairs.items()}
"""Maps a letter to the Latin letter that it looks like in common fonts."""
TO_LATIN = str.maketrans(LOOK_ALIKES)
# In Cyrillic words the Latin letter is out of place.
TO_CYRILLIC = str.maketrans({latin: own for own, latin in _PAIRS["cyrillic"].items()})

_LATIN, _CYRILLIC, _GREEK, _OTHER, _ACCENTS = _TABLE["letters"].values()
_FOREIGN = _CYRILLIC + _GREEK + _OTHER
FORMULA_LETTERS = frozenset(_TABLE["formulas"]["letters"])
FORMULA_SUBSCRIPTS = frozenset(_TABLE["formulas"]["subscripts"].split())

FOREIGN_LETTER = re.compile(f"[{_FOREIGN}]")
"""A letter of a script that has look-alikes of Latin letters."""
# The search starts at a foreign letter: they are rare, and searching for one class is fast.
SCRIPT_BOUNDARY = re.compile(f"[{_FOREIGN}](?:(?<=[{_LATIN}{_ACCENTS}].)|[{_ACCENTS}]*[{_LATIN}])")
"""The place in a word where two scripts meet. Every word of two scripts has one."""
WORD = re.compile(f"[{_LATIN}{_FOREIGN}{_ACCENTS}]+")
GREEK_LETTER = re.compile(f"[{_GREEK}]")
LATIN_RUN = re.compile(f"[{_LATIN}]+")
LATIN_LIKE_CYRILLIC = frozenset("ABESIJKMHOPCTYXaeijopcyxs")
