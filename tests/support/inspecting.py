"""`inspect` in this process, on a free port."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode, urlsplit

from rolebundle.engine import Engine
from rolebundle.interfaces.inspector import Inspector, InspectServer, address_of, new_token
from rolebundle.interfaces.servers.loopback import listen
from rolebundle.policy.overlays import overlay_folders
from rolebundle.workspace import Workspace


@dataclass(frozen=True)
class Inspecting:
    """A running application.

    Attributes:
        address: of its first view; ends with a slash.
        app: the views behind it.
        server: answers the requests.
    """

    address: str
    app: Inspector
    server: InspectServer

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    @property
    def path(self) -> str:
        """The path that all views share."""
        return urlsplit(self.address).path

    def to(self, view: str, **parameters: str) -> str:
        """The address of a view."""
        return f"{self.address}{view}?{urlencode(parameters, errors='surrogatepass')}"


@contextmanager
def inspecting(db: Path) -> Iterator[Inspecting]:
    """Serve the pages of a corpus until the block ends."""
    token = new_token()
    with Engine(Workspace(db), overlay_folders(corpus=db)) as engine, listen(0) as listener:
        app = Inspector(engine, f"/{token}/")
        server = InspectServer(app, listener, token)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Inspecting(address_of(listener, token), app, server)
        finally:
            server.shutdown()
            thread.join()
