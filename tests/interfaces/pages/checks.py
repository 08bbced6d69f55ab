"""What is on an HTML page, and texts that would like to be more than text."""

from typing import Any

from lxml import html

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><svg onload=alert(1)>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "</pre></main><h1>x</h1>",
    "a\u202eb\u0000c\ud800d",
]


def text_of(page: str) -> str:
    """The text of a page, with single spaces."""
    return " ".join(html.fromstring(page).text_content().split())


def elements_of(page: str) -> list[tuple[str, list[str]]]:
    """Each element with the names of its attributes; marks of matched words are left out."""
    elements = html.fromstring(page).iter()
    return [(str(e.tag), sorted(map(str, e.keys()))) for e in elements if e.tag != "mark"]


def is_closed(page: str) -> bool:
    """Whether a page leads nowhere and loads nothing."""
    forbidden = "//script | //form | //img | //iframe | //@style | //link[@rel!='icon']"
    parsed = html.fromstring(page)
    links = [str(link.get("href")) for link in parsed.iter("a")]
    return all(link.startswith("#") for link in links) and not parsed.xpath(forbidden)


def with_text(values: Any, text: str, names: set[str]) -> Any:
    """The same JSON values with another text in the fields of these names."""
    if isinstance(values, dict):
        return {
            name: _replaced(value, text) if name in names else with_text(value, text, names)
            for name, value in values.items()
        }
    return (
        [with_text(value, text, names) for value in values] if isinstance(values, list) else values
    )


def _replaced(value: Any, text: str) -> Any:
    if value is None or value == "":
        return value
    return [text] * len(value) if isinstance(value, list) else text
