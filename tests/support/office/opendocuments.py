"""OpenDocument files, made by hand from their XML, with a fact that people see or do not see."""

from collections.abc import Mapping

from support.office.parts import DAWN, FACT, zipped

_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_OPEN = " ".join(
    f'xmlns:{prefix}="{_OASIS}:{name}:1.0"'
    for prefix, name in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("style", "style"),
        ("fo", "xsl-fo-compatible"),
        ("svg", "svg-compatible"),
        ("presentation", "presentation"),
    )
)


def opendocument(
    body: str, kind: str = "text", styles: str = "", parts: Mapping[str, str] | None = None
) -> bytes:
    """An OpenDocument file with these automatic styles."""
    return zipped(
        {
            "content.xml": f"<office:document-content {_OPEN}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
            **(parts or {}),
        }
    )


def style(properties: str, family: str = "text", kind: str = "text") -> str:
    return (
        f'<style:style style:name="S" style:family="{family}">'
        f"<style:{kind}-properties {properties}/></style:style>"
    )


_O = f"<text:p>{DAWN}</text:p>"
_SPAN = f'<text:p><text:span text:style-name="S">{FACT}</text:span></text:p>'
_TABLE_ROWS = (
    f"<table:table-row><table:table-cell>{_O}</table:table-cell><table:table-cell>{_O}"
    "</table:table-cell></table:table-row>"
)
_HIDDEN_SPANS = {
    "display": 'text:display="none"',
    "white": 'fo:color="#ffffff"',
    "same-color": 'fo:color="#ff0000" fo:background-color="#ff0000"',
    "tiny": 'fo:font-size="1pt"',
}
ODT = {
    **{name: opendocument(_O + _SPAN, styles=style(look)) for name, look in _HIDDEN_SPANS.items()},
    "paragraph-style": opendocument(
        f'{_O}<text:p text:style-name="S">{FACT}</text:p>',
        styles=style('text:display="none"', "paragraph"),
    ),
    "hidden-section": opendocument(
        f'{_O}<text:section text:display="none"><text:p>{FACT}</text:p></text:section>'
    ),
    "deletion": opendocument(
        f"<text:tracked-changes><text:changed-region><text:deletion><text:p>{FACT}</text:p>"
        f"</text:deletion></text:changed-region></text:tracked-changes>{_O}"
    ),
    "annotation": opendocument(
        f"<text:p>{DAWN}<office:annotation><text:p>{FACT}</text:p></office:annotation></text:p>"
    ),
    "hidden-text": opendocument(
        f'{_O}<text:p><text:hidden-text text:is-hidden="true" text:string-value="{FACT}">{FACT}'
        "</text:hidden-text></text:p>"
    ),
    "hidden-paragraph": opendocument(
        f'{_O}<text:p><text:hidden-paragraph text:is-hidden="true"/>{FACT}</text:p>'
    ),
    "variable": opendocument(
        f'{_O}<text:p><text:variable-set text:display="none">{FACT}</text:variable-set></text:p>'
    ),
    "script": opendocument(f"<text:p>{DAWN}<text:script>{FACT}</text:script></text:p>"),
    "alt-text": opendocument(
        f"<text:p>{DAWN}<draw:frame><svg:title>{FACT}</svg:title><svg:desc>{FACT}</svg:desc>"
        "</draw:frame></text:p>"
    ),
    "far-frame": opendocument(
        f'{_O}<text:p><draw:frame svg:x="-500cm"><draw:text-box><text:p>{FACT}</text:p>'
        "</draw:text-box></draw:frame></text:p>"
    ),
    "covered-cell": opendocument(
        f"{_O}<table:table>{_TABLE_ROWS}<table:table-row><table:table-cell>{_O}</table:table-cell>"
        f"<table:covered-table-cell><text:p>{FACT}</text:p></table:covered-table-cell>"
        "</table:table-row></table:table>"
    ),
    "sheet": opendocument(
        f'<table:table table:name="a">{_TABLE_ROWS}</table:table><table:table table:style-name="S">'
        f"<table:table-row><table:table-cell><text:p>{FACT}</text:p></table:table-cell>"
        "</table:table-row></table:table>",
        "spreadsheet",
        style('table:display="false"', "table", "table"),
    ),
    "sheet-row": opendocument(
        f'<table:table table:name="a">{_TABLE_ROWS}<table:table-row table:visibility="collapse">'
        f"<table:table-cell><text:p>{FACT}</text:p></table:table-cell></table:table-row></table:table>",
        "spreadsheet",
    ),
    "sheet-column": opendocument(
        '<table:table table:name="a"><table:table-column/><table:table-column'
        ' table:visibility="collapse"/><table:table-row><table:table-cell>'
        f"{_O}</table:table-cell><table:table-cell><text:p>{FACT}</text:p></table:table-cell>"
        "</table:table-row></table:table>",
        "spreadsheet",
    ),
    "slide": opendocument(
        f"<draw:page><draw:frame><draw:text-box>{_O}</draw:text-box></draw:frame></draw:page>"
        '<draw:page draw:style-name="S"><draw:frame><draw:text-box>'
        f"<text:p>{FACT}</text:p></draw:text-box></draw:frame></draw:page>",
        "presentation",
        style('presentation:visibility="hidden"', "drawing-page", "drawing-page"),
    ),
}
VISIBLE_ODT = {
    "plain": opendocument(f"{_O}<text:p>{FACT}</text:p>"),
    "white-on-blue": opendocument(
        _O + _SPAN, styles=style('fo:color="#ffffff" fo:background-color="#000080"')
    ),
    "note": opendocument(
        f"<text:p>{DAWN}<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        f"<text:p>{FACT}</text:p></text:note-body></text:note></text:p>"
    ),
    "frame": opendocument(
        f"{_O}<text:p><draw:frame><draw:text-box><text:p>{FACT}</text:p></draw:text-box></draw:frame></text:p>"
    ),
    "section": opendocument(f"{_O}<text:section><text:p>{FACT}</text:p></text:section>"),
}
