"""E-books, made by hand from their XML, with a fact that people see or do not see."""

from collections.abc import Mapping

from ingest.office.parts import DAWN, FACT, zipped


def epub(page: str, sheet: str = "", parts: Mapping[str, str] | None = None) -> bytes:
    """A book with one chapter, which links to the style sheet ``s.css``."""
    return zipped(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="o/b.opf"/></rootfiles></container>',
            "o/b.opf": '<package xmlns="http://www.idpf.org/2007/opf"'
            ' xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Harbours</dc:title>'
            '</metadata><manifest><item id="a" href="t/a%201.xhtml"'
            ' media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
            "o/t/a 1.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
            '<link rel="stylesheet" href="../s.css"/></head>'
            f"<body><h1>One</h1><p>{DAWN}</p>{page}</body></html>",
            "o/s.css": sheet,
            **(parts or {}),
        }
    )


EPUB = {
    "inline": epub(f'<p style="display:none">{FACT}</p>'),
    "linked-sheet": epub(f'<p class="x">{FACT}</p>', ".x { display: none }"),
    "linked-white": epub(f'<p class="x">{FACT}</p>', ".x { color: #fff }"),
    "own-sheet": epub(f'<p class="x">{FACT}</p><style>.x{{visibility:hidden}}</style>'),
    "hidden": epub(f'<p hidden="hidden">{FACT}</p>'),
    "comment": epub(f"<!-- {FACT} -->"),
    "alt-text": epub(f'<img alt="{FACT}" title="{FACT}"/>'),
    "unused-page": epub("", parts={"o/t/b.xhtml": f"<html><body>{FACT}</body></html>"}),
}
VISIBLE_EPUB = {
    "plain": epub(f"<p>{FACT}</p>"),
    "aside": epub(f"<aside><p>{FACT}</p></aside>"),
    "article": epub(f"<article><p>x</p></article><p>{FACT}</p>"),
    "header": epub(f"<header><p>{FACT}</p></header>"),
    "overridden": epub(
        f'<p class="x">{FACT}</p><style>.x{{display:block}}</style>', ".x{display:none}"
    ),
}
