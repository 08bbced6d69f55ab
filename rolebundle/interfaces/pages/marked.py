"""A text with the query's terms marked, as safe markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import Markup, escape

from rolebundle.interfaces.matches import Terms, covered
from rolebundle.interfaces.pages.page import visible


def marked_text(text: str, terms: Terms) -> Markup:
    """The whole text; each term of the query is in a ``mark`` element."""
    return marked_parts(text, covered(terms.find(text)))


def marked_parts(text: str, spans: Iterable[tuple[int, int]]) -> Markup:
    """The text with the given parts in ``mark`` elements.

    Args:
        text: any text.
        spans: offsets of the first character of a part and of the one after its last; in order,
            and without overlaps.
    """
    return Markup("").join(_parts(text, spans))


def _parts(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Markup]:
    place = 0
    for start, end in spans:
        yield escape(visible(text[place:start]))
        yield Markup("<mark>{}</mark>").format(visible(text[start:end]))
        place = end
    yield escape(visible(text[place:]))
