"""MathML, as in pages, books and OpenDocument files: a formula as a line of text.

``x^2``, ``x_1``, ``(a+b)/2``, ``√[3](x)``, ``∑_(i=1)^n``; rows of a matrix are separated by ``;``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rolebundle.ingest.readers.elements import integer_in, local_name
from rolebundle.ingest.readers.notation import fraction, root, scripts
from rolebundle.text.decoding import one_line

_TOKENS = frozenset(("mi", "mn", "mo", "mtext", "ms"))
_WITHOUT_TEXT = frozenset(("annotation", "annotation-xml", "mphantom"))
_INVISIBLE = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b"))
_TAIL = re.compile(r"[\w^/.]*\Z")
_SCRIPTED = re.compile("m(sub|under)?(sup|over)?")


def mathml_text(element: Any) -> str:
    """The text of a formula, or of a part of one, on one line.

    Args:
        element: an element of lxml, such as ``math``, in any namespace or in none.
    """
    name = local_name(element)
    if not name or name in _WITHOUT_TEXT:
        return ""
    if name in _TOKENS:
        return one_line("".join(element.itertext())).translate(_INVISIBLE)
    if name == "mspace":
        return " "
    children = [child for child in element if local_name(child)]
    if name in {"semantics", "maction"}:  # one of them is shown
        selected = integer_in(element.get("selection"), 1) - 1
        return "".join(map(mathml_text, children[selected : selected + 1]))
    parts = [mathml_text(child) for child in children]
    if match := _SCRIPTED.fullmatch(name):
        base, others = "".join(parts[:1]), iter((*parts[1:], "", ""))
        below, above = (next(others) if group else "" for group in match.groups())
        if name == "mover" and len(above) == 1 and not above.isalnum():
            return base + above  # an accent
        return scripts(base, below, above)
    if name == "mfrac" and len(parts) == 2:
        # Without a bar it is a binomial coefficient.
        has_bar = not element.get("linethickness", "").startswith("0")
        return fraction(*parts) if has_bar else "; ".join(parts)
    if name == "mroot" and len(parts) == 2:
        return root(*parts)
    if name == "mfenced":
        marks = "".join(element.get("separators", ",").split()) or " "
        marks = marks.ljust(len(parts), marks[-1])
        inner = "".join(mark + part for mark, part in zip(" " + marks, parts, strict=False))
        return f"{element.get('open', '(')}{inner.lstrip()}{element.get('close', ')')}"
    if name in {"mtable", "mtr", "mlabeledtr"}:
        return ("; " if name == "mtable" else " ").join(parts)
    text = _joined(parts)
    if name == "msqrt" or element.get("notation") == "radical":
        return root(text)
    # A text outside of the elements for texts.
    return text or ("" if children else one_line(element.text or ""))


def _joined(parts: Iterable[str]) -> str:
    """Parts beside each other. A number never continues what is before it, nor a word or script."""
    text = last = ""
    for part in filter(None, parts):
        if text[-1:].isalnum() and (part[0].isalnum() or part[0] == "√"):
            is_long = len(last := _TAIL.findall(last)[0]) > 1 and not last.isdigit()
            is_word = len(part) > 1 and part[:2].isalpha()
            text += " " * (is_long or is_word or part[0].isdigit())
        text, last = text + part, part
    return one_line(text)
