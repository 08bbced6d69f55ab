"""Pages in a real browser, and what they do there."""

from pathlib import Path
from typing import Any

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


class Visitor:
    """A page of a browser, and what happened since it shows its present file.

    Attributes:
        page: the page.
        requests: the addresses that it asked for, other than its own.
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
        self.requests: list[str] = []
        self.messages: list[str] = []
        self._address = ""
        self.page.on("dialog", self._dismiss)
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("console", self._note)

    def visit(self, path: Path) -> None:
        """Open a file."""
        self.requests.clear()
        self.messages.clear()
        self._address = path.as_uri()
        self.page.goto(self._address)

    def text(self) -> str:
        """All text, also what is folded."""
        return str(self.page.locator("body").evaluate("body => body.textContent"))

    def page_problems(self) -> list[str]:
        """What of the shown texts became a part of the page, or did something. Normally empty."""
        state = self.page.evaluate(_STATE)
        return [
            *(
                f"{name}: {state[name]}, not {value}"
                for name, value in _CLEAN
                if state[name] != value
            ),
            *(
                f"link to {target}"
                for target in state["addresses"]
                if not target.startswith(("#", "data:,"))
            ),
            *(f"request: {address}" for address in self.requests),
            *self.messages,
        ]

    def _pass_on(self, route: Any, request: Any) -> None:
        if request.url == self._address:
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
