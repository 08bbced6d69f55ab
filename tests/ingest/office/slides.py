"""Presentations, made by hand from their XML, with a fact that people see or do not see."""

from collections.abc import Mapping

from ingest.office.parts import DAWN, FACT, OFFICE, RELATION, relations, zipped

_SLIDES = (
    f'xmlns:p="{OFFICE}/presentationml/2006/main" xmlns:a="{OFFICE}/drawingml/2006/main"'
    f' xmlns:r="{RELATION}"'
)


def shape(text: str, properties: str = "", box: str = "", more: str = "", doc: str = "") -> str:
    """A text box. ``properties`` are those of its run, ``more`` those of the shape."""
    place = box or '<a:off x="1" y="1"/><a:ext cx="99999" cy="99999"/>'
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="b" {doc}/><p:nvPr/></p:nvSpPr>'
        f"<p:spPr><a:xfrm>{place}</a:xfrm>{more}</p:spPr>"
        f"<p:txBody><a:p><a:r><a:rPr {properties}</a:rPr><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def title_shape(text: str) -> str:
    return (
        '<p:sp><p:nvSpPr><p:cNvPr id="1" name="t"/><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr>'
        f"<p:spPr/><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def slide(shapes: str, attributes: str = "", background: str = "") -> str:
    return f"<p:sld {_SLIDES} {attributes}><p:cSld>{background}<p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def pptx(*slides: str, notes: str = "", parts: Mapping[str, str] | None = None) -> bytes:
    """A presentation; ``notes`` are those of the first slide."""
    numbers = range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId id="{n}" r:id="rId{n}"/>' for n in numbers)
    members = {
        "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {_SLIDES}><p:sldIdLst>{ids}</p:sldIdLst>"
        '<p:sldSz cx="1000000" cy="700000"/></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(
            *(("slide", f"slides/slide{n}.xml") for n in numbers)
        ),
        **{f"ppt/slides/slide{n}.xml": content for n, content in enumerate(slides, start=1)},
        **(parts or {}),
    }
    if notes:
        body = title_shape(notes).replace("title", "body")
        members["ppt/slides/_rels/slide1.xml.rels"] = relations(("notesSlide", "../notes1.xml"))
        page = slide(body).replace("p:sld ", "p:notes ").replace("/p:sld>", "/p:notes>")
        members["ppt/notes1.xml"] = page
    return zipped(members)


def _fill(color: str, alpha: str = "") -> str:
    inner = f'<a:alpha val="{alpha}"/>' if alpha else ""
    return f'<a:solidFill><a:srgbClr val="{color}">{inner}</a:srgbClr></a:solidFill>'


_S = title_shape("Harbour") + shape(DAWN, ">")
_FAR = '<a:off x="-500000" y="1"/><a:ext cx="99999" cy="99999"/>'
_GROUP = (
    '<p:grpSp><p:grpSpPr><a:xfrm><a:off x="5000000" y="0"/><a:ext cx="99999" cy="99999"/>'
    '<a:chOff x="0" y="0"/><a:chExt cx="99999" cy="99999"/></a:xfrm></p:grpSpPr>{}</p:grpSp>'
)
_HIDDEN_RUNS = {
    "white": ">" + _fill("FFFFFF"),
    "transparent": ">" + _fill("000000", "0"),
    "no-fill": "><a:noFill/>",
    "tiny": 'sz="100">',
}
_BACKGROUND = f"<p:bg><p:bgPr>{_fill('112233')}</p:bgPr></p:bg>"
PPTX = {
    **{name: pptx(slide(_S + shape(FACT, look))) for name, look in _HIDDEN_RUNS.items()},
    "hidden-slide": pptx(slide(_S), slide(shape(FACT, ">"), 'show="0"')),
    "off-slide": pptx(slide(_S + shape(FACT, ">", _FAR))),
    "off-slide-group": pptx(slide(_S + _GROUP.format(shape(FACT, ">")))),
    "hidden-shape": pptx(slide(_S + shape(FACT, ">", doc='hidden="1"'))),
    "same-as-shape": pptx(slide(_S + shape(FACT, ">" + _fill("000080"), more=_fill("000080")))),
    "same-as-background": pptx(
        slide(_S + shape(FACT, ">" + _fill("112233")), background=_BACKGROUND)
    ),
    "alt-text": pptx(slide(_S + shape("x", ">", doc=f'descr="{FACT}"'))),
    "comment": pptx(slide(_S), parts={"ppt/comments/comment1.xml": f"<c><text>{FACT}</text></c>"}),
    "unused-slide": pptx(slide(_S), parts={"ppt/slides/slide9.xml": slide(shape(FACT, ">"))}),
    "layout": pptx(slide(_S), parts={"ppt/slideLayouts/slideLayout1.xml": slide(shape(FACT, ">"))}),
}
PPTX["white-on-layout"] = pptx(
    slide(_S),
    parts={
        "ppt/slides/_rels/slide1.xml.rels": relations(("slideLayout", "../layout.xml")),
        "ppt/layout.xml": slide(shape(FACT, ">" + _fill("FFFFFF"))),
    },
)
_PICTURE = (
    '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x"/></p:nvPicPr><p:spPr><a:xfrm><a:off x="0" y="0"/>'
    '<a:ext cx="1000000" cy="700000"/></a:xfrm></p:spPr></p:pic>'
)
_WHITE = shape(FACT, ">" + _fill("FFFFFF"))
VISIBLE_PPTX = {
    "plain": pptx(slide(_S + shape(FACT, ">"))),
    "notes": pptx(slide(_S), notes=FACT),
    "white-on-blue": pptx(slide(_S + shape(FACT, ">" + _fill("FFFFFF"), more=_fill("000080")))),
    "white-over-picture": pptx(slide(_PICTURE + _S + _WHITE)),
    "group": pptx(slide(_S + _GROUP.replace("5000000", "1").format(shape(FACT, ">")))),
    "white-over-layout": pptx(
        slide(_S + _WHITE),
        parts={
            "ppt/slides/_rels/slide1.xml.rels": relations(("slideLayout", "../layout.xml")),
            "ppt/layout.xml": slide(shape("", ">", more=_fill("000080"))),
        },
    ),
}
