"""Pages in a real browser, and what they do there."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from support.inspecting import Inspecting

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MAX_MILLISECONDS = 120_000
"""How long a test waits for a page. The machine may have other work."""
_STATE = """() => ({
    scripts: document.scripts.length,
    canary: typeof window.canary + "," + document.querySelectorAll("[id=canary],[name=canary]").length,
    loading: document.querySelectorAll(
        "img,iframe,frame,object,embed,video,audio,source,picture,link:not([rel=icon]),base,portal"
    ).length,
    handlers: [...document.querySelectorAll("*")].flatMap(element =>
        [...element.attributes].map(attribute => attribute.name)
    ).filter(name => name.startsWith("on") || name === "style" || name === "srcdoc").length,
    addresses: [...document.querySelectorAll("[href],[src],[action],[formaction]")].map(
        element => ["href", "src", "action", "formaction"].map(name => element.getAttribute(name))
    ).flat().filter(address => address !== null),
    sheets: document.styleSheets.length,
    parts: document.querySelectorAll("html,head,body,main,head>title,h1").length,
})"""

_CLEAN = (
    ("scripts", 0),
    ("canary", "undefined,0"),
    ("loading", 0),
    ("handlers", 0),
    ("sheets", 1),
    ("parts", 6),
)


@dataclass(frozen=True)
class Corpus:
    """An application over a corpus, and what can be asked of it.

    Attributes:
        running: the application.
        request: fields of a request that has passages and rejections.
        other_role: another role than that of the request.
        selected: chunk id of the first passage.
        rejected: chunk id of the first rejection.
        document_ids: of at most 30 documents, from everywhere.
    """

    running: Inspecting
    request: dict[str, str]
    other_role: str
    selected: str
    rejected: str
    document_ids: list[str]


class Visitor:
    """A page of a browser, and what happened since it was at its present address.

    Attributes:
        page: the page.
        source: its HTML, as it was sent.
        requests: the addresses that it asked for, other than those of its own application.
        messages: errors and warnings of the console, dialogs, and errors of scripts.

    Args:
        browser: any one.
        options: of the browser's context.
    """

    def __init__(self, browser: Any, **options: Any) -> None:
        self._context = browser.new_context(**options)
        self._context.route("**/*", self._pass_on)
        self._context.set_default_timeout(MAX_MILLISECONDS)
        self.page = self._context.new_page()
        self.source = ""
        self.requests: list[str] = []
        self.messages: list[str] = []
        self._origin = ""
        self._content: dict[str, str] = {}
        self.page.on("dialog", self._dismiss)
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("console", self._note)

    def visit(self, address: str, content: str | None = None) -> None:
        """Open an address.

        Args:
            address: of a page of the application, or of a file.
            content: shown as the page of this address, without asking for it.
        """
        self.requests.clear()
        self.messages.clear()
        self._origin = "{0.scheme}://{0.netloc}/".format(urlsplit(address))
        self._content = {} if content is None else {address: content}
        answer = self.page.goto(address)
        self.source = content or (answer.text() if answer else "")

    def text(self) -> str:
        """All text, also what is folded."""
        return str(self.page.locator("body").evaluate("body => body.textContent"))

    def page_problems(self, path: str = "") -> list[str]:
        """What of the shown texts became a part of the page, or did something. Normally empty.

        Args:
            path: all links begin with it.
        """
        state = self.page.evaluate(_STATE)
        own = ("#", "data:,", *([path] if path else []))
        return [
            *(
                f"{name}: {state[name]}, not {value}"
                for name, value in _CLEAN
                if state[name] != value
            ),
            *(f"link to {target}" for target in state["addresses"] if not target.startswith(own)),
            *(f"request: {address}" for address in self.requests),
            *self.messages,
        ]

    def _pass_on(self, route: Any, request: Any) -> None:
        if request.url in self._content:
            content = self._content[request.url]
            route.fulfill(body=content, content_type="text/html; charset=utf-8")
        elif request.url.startswith(self._origin):
            route.continue_()
        else:
            self.requests.append(request.url)
            route.abort()

    def _dismiss(self, dialog: Any) -> None:
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.messages.append(message.text)
