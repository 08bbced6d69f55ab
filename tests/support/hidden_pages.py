"""Pages with a fact that people do not see, and pages with texts that they do see."""

FACT = "The vault of the north wing opens with the word {}."

_BODY = (
    "<html><head><title>Page</title></head><body><p>The harbour opens at dawn.</p>{}</body></html>"
)
_STYLED = (
    "<html><head><title>Page</title><style>{}</style></head><body>"
    "<p>The harbour opens at dawn.</p>{}</body></html>"
)


def _inline(style: str, tag: str = "div") -> str:
    return _BODY.format(f'<{tag} style="{style}">FACT</{tag}>')


def _sheet(css: str, markup: str = '<p class="x">FACT</p>') -> str:
    return _STYLED.format(css, markup)


HTML = {
    # Attributes and elements
    "hidden": _BODY.format("<div hidden>FACT</div>"),
    "hidden-value": _BODY.format("<p HIDDEN='x'>FACT</p>"),
    "aria-hidden": _BODY.format('<div aria-hidden="true">FACT</div>'),
    "template": _BODY.format("<template><p>FACT</p></template>"),
    "noscript": _BODY.format("<noscript><p>FACT</p></noscript>"),
    "comment": _BODY.format("<!-- FACT -->"),
    "input": _BODY.format('<input type="hidden" value="FACT">'),
    "title-attribute": _BODY.format('<a href="#" title="FACT">link</a>'),
    "data-attribute": _BODY.format('<p data-note="FACT">text</p>'),
    "svg": _BODY.format("<svg><title>FACT</title><desc>FACT</desc><metadata>FACT</metadata></svg>"),
    "annotation": _BODY.format(
        "<math><semantics><mi>x</mi><annotation encoding='text/plain'>FACT</annotation></semantics></math>"
    ),
    "dialog": _BODY.format("<dialog><p>FACT</p></dialog>"),
    "datalist": _BODY.format("<datalist id=d><option>FACT</option></datalist>"),
    "popover": _BODY.format("<div popover>FACT</div>"),
    "font": _BODY.format('<font color="#FFFFFF">FACT</font>'),
    "bgcolor": _BODY.format(
        '<table bgcolor="navy"><tr><td><font color="#000080">FACT</font></table>'
    ),
    "body-color": _BODY.replace("<body>", '<body bgcolor="black" text="white">').format(
        '<p style="color:#000">FACT</p>'
    ),
    # Inline styles
    "display": _inline("display:none"),
    "display-important": _inline("DISPLAY : NONE !IMPORTANT; display: block"),
    "visibility": _inline("visibility: hidden", "span"),
    "collapse": _inline("visibility:collapse"),
    "opacity": _inline("opacity:0"),
    "opacity-small": _inline("opacity:.02", "span"),
    "opacity-percent": _inline("opacity: 1%"),
    "filter": _inline("filter: opacity(0%)"),
    "font-size-0": _inline("font-size:0", "span"),
    "font-size-1": _inline("font-size:1px"),
    "font-size-pt": _inline("font-size: 0.1pt"),
    "font-shorthand": _inline("font: 0/0 serif"),
    "white": _inline("color:#fff"),
    "near-white": _inline("color: #FDFDFD", "span"),
    "white-hsl": _inline("color:hsl(0, 0%, 100%)"),
    "same-color": _inline("color:#123456;background:rgb(18, 52, 86)"),
    "rgba": _inline("color:rgba(0,0,0,0)"),
    "transparent": _inline("color: transparent"),
    "hex-alpha": _inline("color: #12345600"),
    "left": _inline("position:absolute;left:-9999px"),
    "top-em": _inline("position: fixed; top: -999em"),
    "text-indent": _inline("text-indent:-9999px"),
    "margin": _inline("margin: 0 0 0 -5000px"),
    "clip": _inline("position:absolute;clip:rect(0 0 0 0)"),
    "clip-path": _inline("clip-path: inset(50%)"),
    "clip-circle": _inline("clip-path: circle(0)"),
    "overflow": _inline("height:0;overflow:hidden"),
    "pixel": _inline("position:absolute;width:1px;height:1px;overflow:hidden"),
    "max-height": _inline("max-height:0px; overflow: hidden"),
    "scale": _inline("transform: scale(0)"),
    "translate": _inline("transform:translateX(-200vw)"),
    "mso-hide": _inline("mso-hide: all"),
    "entities": _inline("display&#58;&#x6e;one"),
    "escapes": _inline("d\\69splay:n\\6f ne"),
    "css-comments": _inline("display:/**/none/* */"),
    "inherited-background": _BODY.format(
        '<div style="background:#222"><p><span style="color:#232323">FACT</span></p></div>'
    ),
    # Style sheets of the page
    "class": _sheet(".x { display: none }"),
    "id": _sheet("#y{visibility:hidden}", "<p id=y>FACT</p>"),
    "tag": _sheet("q { opacity: 0 }", "<q>FACT</q>"),
    "combinators": _sheet(
        "div > p.x + em[data-k='v'] {font-size:0}",
        "<div><p class='x'>t</p><em data-k=v>FACT</em></div>",
    ),
    "sheet-white": _sheet(".x{color:white}"),
    "sheet-background": _sheet("body{background:#111} .x{color:#111}"),
    "sheet-off-screen": _sheet(".x{position:absolute;left:-10000px}"),
    "sheet-clip": _sheet(
        ".x{position:absolute;overflow:hidden;clip:rect(1px,1px,1px,1px);width:1px;height:1px}"
    ),
    "sheet-escape": _sheet(".\\78 { dis\\70lay: none }"),
    "sheet-comment": _sheet(".x/**/{/*}*/display/**/:none}"),
    "sheet-media": _sheet("@media screen and (min-width: 1px) {.x{display:none}}"),
    "sheet-supports": _sheet("@supports (display: grid) { .x { display: none } }"),
    "sheet-nested": _sheet(
        ".o { & .x { display: none } }", "<div class=o><p class=x>FACT</p></div>"
    ),
    "sheet-important": _sheet(".x{display:none!important} p.x{display:block}"),
    "sheet-nth": _sheet("p:nth-child(2){display:none}", "<p>FACT</p>"),
    "sheet-not": _sheet("p:not(.shown):not(:first-child){display:none}", "<p>FACT</p>"),
    "sheet-has": _sheet("div:has(p){display:none}", "<div><p>FACT</p></div>"),
    "sheet-inline-tag": _sheet("em{display:none}", "<p>Some <em>FACT</em> text.</p>"),
    "sheet-in-body": _BODY.format("<style>b{display:none}</style><p>a <b>FACT</b></p>"),
    "hidden-among-others": _BODY.format("<div hidden a b data-1='x'>FACT</div>"),
    "sheet-in-comment": _sheet("<!-- .x{display:none} -->"),
    "sheet-media-line": _sheet("@media\nscreen{.x{display:none}}"),
    "variable": _inline("--x:none;display:var(--x)"),
    "system-color": _inline("color: Canvas"),
    "around-main": (
        "<html><head><title>t</title></head><body><p>The harbour opens at dawn.</p>"
        "<div style='display:none'><main><p>FACT</p></main></div></body></html>"
    ),
}

VISIBLE_HTML = {
    "details": _BODY.format("<details><summary>More</summary><p>FACT</p></details>"),
    "white-on-dark": _BODY.format('<p style="color:white;background:#333">FACT</p>'),
    "dark-page": _STYLED.format("body{background:#111;color:#eee}", "<p>FACT</p>"),
    "print": _sheet("@media print { .x { display: none } }"),
    "print-sheet": _BODY.format("<style media=print>p{display:none}</style><p>FACT</p>"),
    "phone": _sheet("@media (max-width: 600px) { .x { display: none } }"),
    "almost-opaque": _inline("opacity:.8"),
    "readable-size": _inline("font-size: 12px"),
    "shown-inside": _BODY.format(
        '<div style="font-size:0"><span style="font-size:14px"></span></div><p>FACT</p>'
    ),
    "overridden": _sheet(".x{display:none} p.x{display:block}"),
    "inline-override": _sheet(".x{display:none}", '<p class="x" style="display:block">FACT</p>'),
    "pseudo-element": _sheet(".x::before{display:none} .x:hover{opacity:.9}"),
    "keyframes": _sheet("@keyframes in { from { opacity: 0; visibility: hidden } } .x{color:#000}"),
    "selector-of-others": _sheet(".y{display:none} .x .y{opacity:0}"),
    "gradient-text": _inline("color:transparent;background:linear-gradient(red,blue)"),
    "text-shaped-background": _inline("color:transparent;background:red;background-clip:text"),
    "proportions": _BODY.format(
        '<div style="height:0;overflow:hidden;padding-bottom:56%">FACT</div>'
    ),
}

# A click or another device shows them, so they stay; whether people see them at first is not sure.
DOUBTFUL_HTML = {
    "tab": _BODY.format('<div role="tabpanel" hidden>FACT</div>'),
    "tab-class": _BODY.format('<div class="tab-pane" style="display:none">FACT</div>'),
    "accordion": _BODY.format('<div class="accordion-body" style="display:none">FACT</div>'),
    "controlled": _BODY.format('<div aria-controls="c">Show</div><div id="c" hidden>FACT</div>'),
    "hover": _sheet(
        ".x{display:none} .o:hover .x{display:block}", "<div class=o><p class=x>FACT</p></div>"
    ),
    "target": _sheet(".x:not(:target){display:none}"),
    "checkbox": _sheet(
        ".x{max-height:0;overflow:hidden} input:checked ~ .x{max-height:none}",
        "<div><input type=checkbox><p class=x>FACT</p></div>",
    ),
    "wide-screen": _sheet("@media (min-width: 900px) {.x{display:none}}"),
    "print-only": _sheet(".x{display:none} @media print{.x{display:block}}"),
    "linked": (
        "<html><head><title>t</title><link rel=stylesheet href=s.css></head><body><p>The harbour"
        ' opens at dawn.</p><p class="banner"><span style="color:white">FACT</span></p></body></html>'
    ),
    "whole-page": _BODY.replace("<body>", '<body style="opacity:0">').format("<p>FACT</p>"),
}

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
    "opacity": _VISIBLE + "/Gx gs\n" + _FACT_AT.format(""),
    "array": _VISIBLE + "3 Tr BT /F1 12 Tf 72 600 Td [(FACT)] TJ ET\n",
    "next-line": "BT /F1 12 Tf 14 TL 72 720 Td (The harbour opens at dawn.) Tj 3 Tr (FACT) ' ET\n",
    "form": _VISIBLE + "q 1 0 0 1 0 -5000 cm /Fm Do Q\n",
    "invisible-form": _VISIBLE + "3 Tr /Fm Do\n",
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
    "partly-covered": _VISIBLE + _FACT_AT.format("") + "1 g 60 590 30 30 re f\n",
    "line-above": _VISIBLE + _FACT_AT.format("") + "0 g 72 598 300 1 re f\n",
}

DOUBTFUL_PDF = {
    "scan": "q 612 0 0 792 0 0 cm /Im Do Q 3 Tr\n" + _VISIBLE + _FACT_AT.format(""),
    "covered-by-image": _VISIBLE + _FACT_AT.format("") + "q 500 0 0 30 60 590 cm /Im Do Q\n",
}
