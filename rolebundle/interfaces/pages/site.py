"""What a page knows of the application around it. A page in a file has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode


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
