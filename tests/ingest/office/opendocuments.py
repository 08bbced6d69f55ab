"""OpenDocument files, made by hand from their XML, with a fact that people see or do not see."""

from collections.abc import Mapping

from ingest.office.parts import DAWN, FACT, zipped

_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_PREFIXES = {"draw": "drawing", "fo": "xsl-fo-compatible", "svg": "svg-compatible"}
_OPEN = " ".join(
    f'xmlns:{prefix}="{_OASIS}:{_PREFIXES.get(prefix, prefix)}:1.0"'
    for prefix in "office text table draw style fo svg presentation".split()
)


def opendocument(
    body: str, kind: str = "text", styles: str = "", parts: Mapping[str, str] | None = None
) -> bytes:
    """An OpenDocument file with these automatic styles."""
    content = (
        f"<office:document-content {_OPEN}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    return zipped({"content.xml": content, **(parts or {})})


def opendocument_part(content: str) -> str:
    """A member with this content, such as ``styles.xml``."""
    return f"<office:document-styles {_OPEN}>{content}</office:document-styles>"


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
_FACT = f"<text:p>{FACT}</text:p>"
_ROW = "<table:table-row {}>{}</table:table-row>"
_CELL = "<table:table-cell>{}</table:table-cell>"
_BOX = "<draw:frame {}><draw:text-box>{}</draw:text-box></draw:frame>"
# What follows the paragraph that people see.
_HIDDEN_BODIES = {
    "hidden-section": f'<text:section text:display="none">{_FACT}</text:section>',
    "deletion": "<text:tracked-changes><text:changed-region><text:deletion>"
    f"{_FACT}</text:deletion></text:changed-region></text:tracked-changes>",
    "annotation": f"<text:p>x<office:annotation>{_FACT}</office:annotation></text:p>",
    "hidden-text": f'<text:p><text:hidden-text text:is-hidden="true" text:string-value="{FACT}">'
    f"{FACT}</text:hidden-text></text:p>",
    "hidden-paragraph": f'<text:p><text:hidden-paragraph text:is-hidden="true"/>{FACT}</text:p>',
    "variable": f'<text:p><text:variable-set text:display="none">{FACT}</text:variable-set></text:p>',
    "script": f"<text:p>x<text:script>{FACT}</text:script></text:p>",
    "alt-text": f"<text:p><draw:frame><svg:title>{FACT}</svg:title><svg:desc>{FACT}</svg:desc>"
    "</draw:frame></text:p>",
    "far-frame": "<text:p>" + _BOX.format('svg:x="-500cm"', _FACT) + "</text:p>",
    "covered-cell": f"<table:table>{_TABLE_ROWS}<table:table-row>{_CELL.format(_O)}"
    f"<table:covered-table-cell>{_FACT}</table:covered-table-cell></table:table-row></table:table>",
}
_COLLAPSED = 'table:visibility="collapse"'
_SHEET = '<table:table table:name="a">{}</table:table>'
_HIDDEN_SHEETS = {
    "sheet": _SHEET.format(_TABLE_ROWS)
    + f'<table:table table:style-name="S">{_ROW.format("", _CELL.format(_FACT))}</table:table>',
    "sheet-row": _SHEET.format(_TABLE_ROWS + _ROW.format(_COLLAPSED, _CELL.format(_FACT))),
    "sheet-column": _SHEET.format(
        f"<table:table-column/><table:table-column {_COLLAPSED}/>"
        + _ROW.format("", _CELL.format(_O) + _CELL.format(_FACT))
    ),
}
_NO_TABLE = style('table:display="false"', "table", "table")
ODT = {
    **{name: opendocument(_O + _SPAN, styles=style(look)) for name, look in _HIDDEN_SPANS.items()},
    **{name: opendocument(_O + body) for name, body in _HIDDEN_BODIES.items()},
    **{name: opendocument(body, "spreadsheet", _NO_TABLE) for name, body in _HIDDEN_SHEETS.items()},
    "paragraph-style": opendocument(
        f'{_O}<text:p text:style-name="S">{FACT}</text:p>',
        styles=style('text:display="none"', "paragraph"),
    ),
    "slide": opendocument(
        f"<draw:page>{_BOX.format('', _O)}</draw:page>"
        f'<draw:page draw:style-name="S">{_BOX.format("", _FACT)}</draw:page>',
        "presentation",
        style('presentation:visibility="hidden"', "drawing-page", "drawing-page"),
    ),
}
_WHITE_ON_BLUE = 'fo:color="#ffffff" fo:background-color="#000080"'
VISIBLE_ODT = {
    "plain": opendocument(_O + _FACT),
    "white-on-blue": opendocument(_O + _SPAN, styles=style(_WHITE_ON_BLUE)),
    "note": opendocument(
        f"<text:p>{DAWN}<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        f"{_FACT}</text:note-body></text:note></text:p>"
    ),
    "frame": opendocument(f"{_O}<text:p>{_BOX.format('', _FACT)}</text:p>"),
    "section": opendocument(f"{_O}<text:section>{_FACT}</text:section>"),
}
