"""One page from a template: every text is escaped, and nothing but its own style is loaded.

A document's text is hostile. The templates escape all values, characters that hide or reorder text
are replaced by their names, and the Content-Security-Policy allows no script and no request.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rolebundle.interfaces.pages import words
from rolebundle.interfaces.render import Terms, covered
from rolebundle.scan.characters import (
    CONTROLS,
    EMBEDDINGS,
    FORMATS,
    OPERATORS,
    OVERRIDES,
    TAGS,
    ZERO_WIDTH,
)
from rolebundle.text.words import counted

_UNSAFE = re.compile(
    f"[{CONTROLS}{EMBEDDINGS}{FORMATS}{OPERATORS}{OVERRIDES}{TAGS}{ZERO_WIDTH}\ud800-\udfff]"
)
_POLICY = (
    "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
    "form-action {form_action}"
)


@dataclass(frozen=True)
class Site:
    """The application that serves a page: the addresses of its views, and who asks.

    Attributes:
        base: the path that all views share, with the token and a slash at its end. Empty for a
            file, which has no links.
        request: the fields of the request that the page shows, as in a form, so that a link to
            another view keeps the task, the role and the agent.
        is_owner: whether the pages are for the owner of the corpus.
        roles: the roles that can be asked with.
    """

    base: str = ""
    request: Mapping[str, str] = field(default_factory=dict)
    is_owner: bool = False
    roles: Sequence[str] = ()

    @property
    def is_live(self) -> bool:
        """Whether a server answers the links."""
        return bool(self.base)

    def to(self, view: str, **parameters: str | int | None) -> str:
        """The address of a view with these parameters, and for the same agent. Empty in a file."""
        if not self.is_live:
            return ""
        parameters = {"agent": self.request.get("agent"), **parameters}
        query_parameters = {
            name: value for name, value in parameters.items() if value not in (None, "")
        }
        query = urlencode(query_parameters, errors="surrogatepass")
        return f"{self.base}{view}{'?' if query else ''}{query}"

    def same(self, view: str, **changes: str | int | None) -> str:
        """The address of a view for the request of this page, with changes."""
        return self.to(view, **{**self.request, **changes})


FILE = Site()
"""A page in a file."""


def render(template: str, site: Site = FILE, **values: Any) -> str:
    """A template as a whole page.

    Args:
        template: its name in the folder ``templates``, without ``.html.jinja``.
        site: the application that serves the page.
        values: the variables of the template.
    """
    page = _environment().get_template(f"{template}.html.jinja")
    return page.render(site=site, policy=content_policy(is_live=site.is_live), **values)


def visible(text: str) -> str:
    """The text with the names of characters that hide or reorder text: ``⟦U+202E⟧``."""
    return _UNSAFE.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", text)


def marked_text(text: str, terms: Terms) -> Markup:
    """The whole text; each term of the query is in a ``mark`` element."""
    marked, place = Markup(), 0
    for start, end in covered(terms.find(text)):
        marked += escape(visible(text[place:start]))
        marked += Markup("<mark>{}</mark>").format(visible(text[start:end]))
        place = end
    return marked + escape(visible(text[place:]))


@cache
def content_policy(*, is_live: bool) -> str:
    """The Content-Security-Policy of a page; a live one may send forms to its own server."""
    digest = b64encode(sha256(style_sheet().encode()).digest()).decode()
    return _POLICY.format(digest=digest, form_action="'self'" if is_live else "'none'")


@cache
def style_sheet() -> str:
    """The style of all pages."""
    return (files(__package__) / "style.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Also every text that a template inserts without a filter. Markup is not changed.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    # The style sheet is our own, and safe markup.
    environment.globals |= {"style": Markup(style_sheet()), "words": words, "counted": counted}
    environment.filters |= {
        "number": lambda value, digits=3: f"{value:.{digits}f}",
        "thousands": "{:,}".format,
        "percent": "{:.0%}".format,
        # With a real minus.
        "signed": lambda value: f"{value:+.3f}".replace("-", "−"),
        "extract": lambda key, values: values[key],
        # Jinja's own `capitalize` lowers the rest.
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
    }
    return environment
