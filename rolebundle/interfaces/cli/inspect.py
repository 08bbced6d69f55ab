"""`rolebundle inspect`: look at a bundle, or at the whole corpus in a browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import click

from rolebundle.interfaces.cli.options import (
    EngineOptions,
    engine_options,
    html_option,
)
from rolebundle.interfaces.cli.replay import MAX_BUNDLE_BYTES, parse_bundle


@click.command()
@click.argument("bundle_file", metavar="[BUNDLE.json]", required=False, type=click.File("rb"))
@html_option
@engine_options
@click.option("--agent", metavar="ID", help="Show only what this agent may see.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default="any free one",
    help="The port of the application.",
)
def inspect(
    bundle_file: BinaryIO | None,
    html_file: Path | None,
    agent: str | None,
    port: int,
    options: EngineOptions,
) -> None:
    """Show answers, roles, documents and the corpus in a browser.

    Starts an application for this machine only, prints its address and opens it. It changes
    nothing. It ends with Ctrl-C.

    With a BUNDLE.json, which `retrieve --format json` prints, it writes a page of that answer into
    the file of --html, without a corpus.

    \b
    rolebundle inspect
    rolebundle inspect --db team.db --agent review-bot
    rolebundle inspect bundle.json --html answer.html
    """
    if (bundle_file is None) != (html_file is None):
        raise click.UsageError("a BUNDLE.json and --html FILE belong together; give both or none")
    if bundle_file is not None and html_file is not None:
        from rolebundle.interfaces.cli.page_file import write_page
        from rolebundle.interfaces.pages.views import answer_page

        bundle = parse_bundle(bundle_file.read(MAX_BUNDLE_BYTES + 1))
        write_page(html_file, answer_page(bundle))
        return
    # Delayed: the application needs every view.
    from rolebundle.interfaces.inspector.application import VIEWS, Inspector, Parameters
    from rolebundle.interfaces.inspector.server import InspectServer, address_of, new_token
    from rolebundle.interfaces.servers.loopback import listen

    engine = options.engine(agent=agent)
    with engine, listen(port) as listener:
        token = new_token()
        address = address_of(listener, token)
        app = Inspector(engine, f"/{token}/", VIEWS)
        # An unusable corpus, or an agent that sees nothing, is an error of the command.
        app.status(Parameters([]))
        server = InspectServer(app, listener, token)
        click.echo(address)
        if sys.stderr.isatty():
            # A browser in the terminal ends before `open` returns, and waits for the server.
            opened = server.address_for_browser()
            Thread(target=webbrowser.open, args=(opened,), daemon=True).start()
        server.serve_until_signal()
        app.close()
