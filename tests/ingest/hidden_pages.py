"""Pages with a fact that people do not see, and pages with texts that they do see."""

_DAWN = "<p>The harbour opens at dawn.</p>"
_PAGE = f"<html><head><title>Page</title>{{}}</head>{{}}{_DAWN}{{}}</body></html>"
_X = '<p class="x">FACT</p>'


def _page(what: str | tuple[str, str], body: str = "<body>") -> str:
    """A page with this markup, or with a style sheet and markup; a whole page is as it is."""
    if isinstance(what, tuple):
        return _PAGE.format(f"<style>{what[0]}</style>", body, what[1])
    return what if what.startswith("<html>") else _PAGE.format("", body, what)


_HIDING_STYLES = [
    "display:none", "DISPLAY : NONE !IMPORTANT; display: block", "visibility:collapse",
    "opacity:0", "opacity: 1%", "filter: opacity(0%)", "font-size:1px", "font-size: 0.1pt",
    "font: 0/0 serif", "color:#fff", "color:hsl(0, 0%, 100%)",
    "color:#123456;background:rgb(18, 52, 86)", "color:rgba(0,0,0,0)", "color: transparent",
    "color: #12345600", "position:absolute;left:-9999px", "position: fixed; top: -999em",
    "text-indent:-9999px", "margin: 0 0 0 -5000px", "position:absolute;clip:rect(0 0 0 0)",
    "clip-path: inset(50%)", "clip-path: circle(0)", "height:0;overflow:hidden",
    "position:absolute;width:1px;height:1px;overflow:hidden", "max-height:0px; overflow: hidden",
    "transform: scale(0)", "transform:translateX(-200vw)", "mso-hide: all",
    "display&#58;&#x6e;one", "d\\69splay:n\\6f ne", "display:/**/none/* */",
    "--x:none;display:var(--x)", "color: Canvas",
]  # fmt: skip
_HIDING_SPANS = ["visibility: hidden", "opacity:.02", "font-size:0", "color: #FDFDFD"]
_HTML = {
    # Attributes and elements
    "hidden": "<div hidden>FACT</div>",
    "hidden-value": "<p HIDDEN='x'>FACT</p>",
    "aria-hidden": '<div aria-hidden="true">FACT</div>',
    "template": "<template><p>FACT</p></template>",
    "noscript": "<noscript><p>FACT</p></noscript>",
    "comment": "<!-- FACT -->",
    "input": '<input type="hidden" value="FACT">',
    "title-attribute": '<a href="#" title="FACT">link</a>',
    "data-attribute": '<p data-note="FACT">text</p>',
    "svg": "<svg><title>FACT</title><desc>FACT</desc><metadata>FACT</metadata></svg>",
    "annotation": "<math><semantics><mi>x</mi><annotation encoding='text/plain'>FACT</annotation></semantics></math>",
    "dialog": "<dialog><p>FACT</p></dialog>",
    "datalist": "<datalist id=d><option>FACT</option></datalist>",
    "popover": "<div popover>FACT</div>",
    "font": '<font color="#FFFFFF">FACT</font>',
    "bgcolor": '<table bgcolor="navy"><tr><td><font color="#000080">FACT</font></table>',
    "inherited-background": '<div style="background:#222"><p><span style="color:#232323">FACT</span></p></div>',
    "sheet-in-body": "<style>b{display:none}</style><p>a <b>FACT</b></p>",
    "hidden-among-others": "<div hidden a b data-1='x'>FACT</div>",
    "body-color": _page('<p style="color:#000">FACT</p>', '<body bgcolor="black" text="white">'),
    **{style: f'<div style="{style}">FACT</div>' for style in _HIDING_STYLES},
    **{style: f'<span style="{style}">FACT</span>' for style in _HIDING_SPANS},
    # Style sheets of the page
    "class": (".x { display: none }", _X),
    "id": ("#y{visibility:hidden}", "<p id=y>FACT</p>"),
    "tag": ("q { opacity: 0 }", "<q>FACT</q>"),
    "combinators": (
        "div > p.x + em[data-k='v'] {font-size:0}",
        "<div><p class='x'>t</p><em data-k=v>FACT</em></div>",
    ),
    "sheet-white": (".x{color:white}", _X),
    "sheet-background": ("body{background:#111} .x{color:#111}", _X),
    "sheet-off-screen": (".x{position:absolute;left:-10000px}", _X),
    "sheet-clip": (
        ".x{position:absolute;overflow:hidden;clip:rect(1px,1px,1px,1px);width:1px;height:1px}",
        _X,
    ),
    "sheet-escape": (".\\78 { dis\\70lay: none }", _X),
    "sheet-comment": (".x/**/{/*}*/display/**/:none}", _X),
    "sheet-media": ("@media screen and (min-width: 1px) {.x{display:none}}", _X),
    "sheet-supports": ("@supports (display: grid) { .x { display: none } }", _X),
    "sheet-nested": (".o { & .x { display: none } }", "<div class=o><p class=x>FACT</p></div>"),
    "sheet-important": (".x{display:none!important} p.x{display:block}", _X),
    "sheet-nth": ("p:nth-child(2){display:none}", "<p>FACT</p>"),
    "sheet-not": ("p:not(.shown):not(:first-child){display:none}", "<p>FACT</p>"),
    "sheet-has": ("div:has(p){display:none}", "<div><p>FACT</p></div>"),
    "sheet-inline-tag": ("em{display:none}", "<p>Some <em>FACT</em> text.</p>"),
    "sheet-in-comment": ("<!-- .x{display:none} -->", _X),
    "sheet-media-line": ("@media\nscreen{.x{display:none}}", _X),
    "around-main": f"<html><head><title>t</title></head><body>{_DAWN}"
    "<div style='display:none'><main><p>FACT</p></main></div></body></html>",
}
_VISIBLE_HTML = {
    "details": "<details><summary>More</summary><p>FACT</p></details>",
    "white-on-dark": '<p style="color:white;background:#333">FACT</p>',
    "print-sheet": "<style media=print>p{display:none}</style><p>FACT</p>",
    "almost-opaque": '<div style="opacity:.8">FACT</div>',
    "readable-size": '<div style="font-size: 12px">FACT</div>',
    "shown-inside": '<div style="font-size:0"><span style="font-size:14px"></span></div><p>FACT</p>',
    "gradient-text": '<div style="color:transparent;background:linear-gradient(red,blue)">FACT</div>',
    "text-shaped": '<div style="color:transparent;background:red;background-clip:text">FACT</div>',
    "proportions": '<div style="height:0;overflow:hidden;padding-bottom:56%">FACT</div>',
    "dark-page": ("body{background:#111;color:#eee}", "<p>FACT</p>"),
    "print": ("@media print { .x { display: none } }", _X),
    "phone": ("@media (max-width: 600px) { .x { display: none } }", _X),
    "overridden": (".x{display:none} p.x{display:block}", _X),
    "inline-override": (".x{display:none}", '<p class="x" style="display:block">FACT</p>'),
    "pseudo-element": (".x::before{display:none} .x:hover{opacity:.9}", _X),
    "keyframes": ("@keyframes in { from { opacity: 0; visibility: hidden } } .x{color:#000}", _X),
    "selector-of-others": (".y{display:none} .x .y{opacity:0}", _X),
}
# A click or another device shows them, so they stay; whether people see them at first is not sure.
_DOUBTFUL_HTML = {
    "tab": '<div role="tabpanel" hidden>FACT</div>',
    "tab-class": '<div class="tab-pane" style="display:none">FACT</div>',
    "accordion": '<div class="accordion-body" style="display:none">FACT</div>',
    "controlled": '<div aria-controls="c">Show</div><div id="c" hidden>FACT</div>',
    "hover": (
        ".x{display:none} .o:hover .x{display:block}",
        "<div class=o><p class=x>FACT</p></div>",
    ),
    "target": (".x:not(:target){display:none}", _X),
    "checkbox": (
        ".x{max-height:0;overflow:hidden} input:checked ~ .x{max-height:none}",
        "<div><input type=checkbox><p class=x>FACT</p></div>",
    ),
    "wide-screen": ("@media (min-width: 900px) {.x{display:none}}", _X),
    "print-only": (".x{display:none} @media print{.x{display:block}}", _X),
    "linked": "<html><head><title>t</title><link rel=stylesheet href=s.css></head><body>"
    f'{_DAWN}<p class="banner"><span style="color:white">FACT</span></p></body></html>',
    "whole-page": _page("<p>FACT</p>", '<body style="opacity:0">'),
}
HTML, VISIBLE_HTML, DOUBTFUL_HTML = (
    {name: _page(what) for name, what in pages.items()}
    for pages in (_HTML, _VISIBLE_HTML, _DOUBTFUL_HTML)
)

_TEXT = "# Page\n\nThe harbour opens at dawn.\n\n"

MARKDOWN = {
    "comment": _TEXT + "<!-- FACT -->\n\nmore\n",
    "inline-comment": _TEXT + "A text <!-- FACT --> with a comment.\n",
    "long-comment": _TEXT + "<!--\n\nFACT\n\n-->\n",
    "open-comment": _TEXT + "<!-- FACT\n",
    "slashes": _TEXT + "[//]: # (FACT)\n",
    "label-comment": _TEXT + '[comment]: <> "FACT"\n',
    "link-title": _TEXT + '[a link](https://example.org "FACT")\n',
    "image-title": _TEXT + "![a picture](p.png 'FACT')\n",
    "reference-title": _TEXT + '[a link][r]\n\n[r]: https://example.org "FACT"\n',
    "unused-reference": _TEXT + '[x]: https://example.org\n    "FACT"\n',
    "unused-label": _TEXT + "[FACT]: https://example.org\n",
    "unused-footnote": _TEXT + "[^1]: FACT\n",
    "span": _TEXT + 'A text <span style="display:none">FACT</span> with a span.\n',
    "div": _TEXT + "<div hidden>\n\nFACT\n\n</div>\n",
    "open-paragraph": _TEXT + "<p style='opacity:0'>FACT\n\nmore\n",
    "style-sheet": _TEXT + "<style>.x { font-size: 0 }</style>\n\nA <b class=x>FACT</b> here.\n",
    "white": _TEXT + '<font color="white">FACT</font>\n',
    "attribute": _TEXT + '<span data-note="FACT">text</span>\n',
    "template": _TEXT + "<template>FACT</template>\n",
    "instruction": _TEXT + "<?note FACT ?>\n",
    "in-a-list": _TEXT + "- one <!-- FACT -->\n- two\n",
    "in-a-quote": _TEXT + "> quoted <!-- FACT -->\n",
    "after-code": _TEXT + "`<!--` and <!-- FACT `x` -->\n",
}

VISIBLE_MARKDOWN = {
    "no-comment": _TEXT + "<!<!-- a -->-- FACT -->\n",
    "fence": _TEXT + "```html\n<!-- FACT -->\n```\n",
    "code-span": _TEXT + "Write `<!-- FACT -->` for a comment.\n",
    "indented-code": _TEXT + "    [//]: # (FACT)\n",
    "code-in-a-list": _TEXT + "- one\n\n  ```\n  <p hidden>FACT</p>\n  ```\n",
    "escaped": _TEXT + "\\<!-- FACT -->\n",
    "details": _TEXT + "<details><summary>More</summary>\n\nFACT\n\n</details>\n",
    "footnote": _TEXT + "A text[^1].\n\n[^1]: FACT\n",
    "centered": _TEXT + '<p align="center"><b>FACT</b></p>\n',
    "script-component": _TEXT + "<Script src='a.js' />\n\nFACT\n\n<Script>x</Script>\n",
    "after-open-style": _TEXT + "<style>p {}\n\nFACT\n",
    "component": _TEXT + '<Card title="FACT"/>\n',
    "link": _TEXT + '[FACT](https://example.org "a title") and ![FACT](x.png)\n',
}

_VISIBLE = "BT /F1 12 Tf 72 720 Td (The harbour opens at dawn.) Tj ET\n"
_FACT_AT = "BT /F1 12 Tf 72 600 Td {}(FACT) Tj ET\n"
_AROUND = "60 590 500 30 re"

# Content streams of a page of 612 by 792 points. /Gx has no opacity, /Gm multiplies, /Hid is a layer
# that is off, /Im an image, /Fm a form with the fact.
PDF = {
    "render-mode": _VISIBLE + _FACT_AT.format("3 Tr "),
    "white": _VISIBLE + "1 g\n" + _FACT_AT.format(""),
    "near-white-rgb": _VISIBLE + "0.98 0.99 0.98 rg\n" + _FACT_AT.format(""),
    "white-cmyk": _VISIBLE + "0 0 0 0 k\n" + _FACT_AT.format(""),
    "same-color": _VISIBLE + f"0.2 0.3 0.4 rg {_AROUND} f\n0.2 0.3 0.4 rg\n" + _FACT_AT.format(""),
    "tiny": _VISIBLE + "BT /F1 0.1 Tf 72 600 Td (FACT) Tj ET\n",
    "tiny-matrix": _VISIBLE + "q 0.01 0 0 0.01 72 600 cm BT /F1 12 Tf (FACT) Tj ET Q\n",
    "off-page": _VISIBLE + "BT /F1 12 Tf -2000 600 Td (FACT) Tj ET\n",
    "above-page": _VISIBLE + "BT /F1 12 Tf 1 0 0 1 72 900 Tm (FACT) Tj ET\n",
    "clipped": _VISIBLE + "q 0 0 10 10 re W n\n" + _FACT_AT.format("") + "Q\n",
    "covered": _VISIBLE + _FACT_AT.format("") + f"1 1 1 rg {_AROUND} f\n",
    "layer": _VISIBLE + "/OC /Hid BDC\n" + _FACT_AT.format("") + "EMC\n",
    "layer-before": "/OC /Hid BDC\n" + _FACT_AT.format("") + "EMC\n" + _VISIBLE,
    "opacity": _VISIBLE + "/Gx gs\n" + _FACT_AT.format(""),
    "array": _VISIBLE + "3 Tr BT /F1 12 Tf 72 600 Td [(FACT)] TJ ET\n",
    "next-line": "BT /F1 12 Tf 14 TL 72 720 Td (The harbour opens at dawn.) Tj 3 Tr (FACT) ' ET\n",
    "form": _VISIBLE + "q 1 0 0 1 0 -5000 cm /Fm Do Q\n",
    "invisible-form": _VISIBLE + "3 Tr /Fm Do\n",
    "form-opacity": _VISIBLE + "/Gx gs /Fm Do\n",
    "form-layer": _VISIBLE + "/OC /Hid BDC /Fm Do EMC\n",
    "white-stroke": _VISIBLE + "1 G\n" + _FACT_AT.format("1 Tr "),
    "clipping-mode": _VISIBLE + _FACT_AT.format("7 Tr "),
}

VISIBLE_PDF = {
    "plain": _VISIBLE + _FACT_AT.format(""),
    "white-on-dark": _VISIBLE + f"0.1 g {_AROUND} f 1 g\n" + _FACT_AT.format(""),
    "white-on-image": _VISIBLE + "q 500 0 0 30 60 590 cm /Im Do Q 1 g\n" + _FACT_AT.format(""),
    "highlighted": _VISIBLE + _FACT_AT.format("") + f"/Gm gs 1 1 0 rg {_AROUND} f\n",
    "clip-around": _VISIBLE + f"q {_AROUND} W n\n" + _FACT_AT.format("") + "Q\n",
    "restored": _VISIBLE + "q 3 Tr 1 g Q\n" + _FACT_AT.format(""),
    "shown-layer": _VISIBLE + "/OC /Shown BDC\n" + _FACT_AT.format("") + "EMC\n",
    "form": _VISIBLE + "/Fm Do\n",
    "same-text": _VISIBLE
    + "/Span << /ActualText (FACT) >> BDC BT /F1 12 Tf 72 600 Td (FACT) Tj ET EMC\n",
    "partly-covered": _VISIBLE + _FACT_AT.format("") + "1 g 60 590 30 30 re f\n",
    "cover-on-hidden-layer": _VISIBLE
    + _FACT_AT.format("")
    + f"/OC /Hid BDC 1 1 1 rg {_AROUND} f EMC\n",
    "line-above": _VISIBLE + _FACT_AT.format("") + "0 g 72 598 300 1 re f\n",
}

_INK = "q 300 0 0 5 72 {} cm BI /W 1 /H 1 /CS /G /BPC 8 ID \0 EI Q\n"
_SCAN = f"q 612 0 0 792 0 0 cm /Im Do Q\n{_INK.format(722)}{_INK.format(602)}3 Tr\n"
VISIBLE_PDF["text-of-a-scan"] = _SCAN + _VISIBLE + _FACT_AT.format("")

DOUBTFUL_PDF = {
    "two-texts-in-one-place": _SCAN + _VISIBLE + _FACT_AT.format("") * 2,
    "beside-the-scan": _SCAN + _VISIBLE + _FACT_AT.format("").replace("600", "500"),
    "scan": "q 612 0 0 792 0 0 cm /Im Do Q 3 Tr\n" + _VISIBLE + _FACT_AT.format(""),
    "another-text": _VISIBLE
    + "/Span << /ActualText (FACT) >> BDC BT /F1 12 Tf 72 600 Td (a few words) Tj ET EMC\n",
    "covered-by-image": _VISIBLE + _FACT_AT.format("") + "q 500 0 0 30 60 590 cm /Im Do Q\n",
}
