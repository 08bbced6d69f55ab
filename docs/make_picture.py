"""Make the README's picture of an answer, and the example page, from the sample corpus.

Run: python docs/make_picture.py [--check]

Writes `docs/example-answer.html`, and its picture `docs/answer.png`, which needs a Chromium and the
development tools. With --check it writes nothing: it fails if the page has other words than the one
that it would write. Numbers and dates may differ: they depend on the processor and on the times of
the files.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.pages.views import answer_page
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays

FOLDER = Path(__file__).parent
PAGE = FOLDER / "example-answer.html"
PICTURE = FOLDER / "answer.png"
REQUEST = RetrievalRequest(
    task="Can a thief read the notebook on a stolen tablet?",
    role="mossline-security-reviewer",
    limit=3,
    now=datetime(2026, 11, 15, tzinfo=UTC),
)
WIDTH = 1100
"""Pixels of the picture."""
COLORS = 128
MAX_BYTES = 150_000


def example_page() -> str:
    """The page of the answer to `REQUEST`."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "team.db"
        with Admin(db) as admin:
            admin.ingest([data_folder("sample_corpus")], IngestOptions(workers=1))
        with Engine(db, overlay_folders((demo_overlays(),))) as engine:
            bundle = engine.retrieve(REQUEST)
    # A time would be another one in each run.
    timeless = bundle.diagnostics.model_copy(update={"latency_ms": 0.0})
    return answer_page(bundle.model_copy(update={"diagnostics": timeless}))


def words_of(page: str) -> list[str]:
    """The lines of a page without its numbers."""
    return re.sub(r"\d[\d.,:TZ-]*", "0", page).splitlines()


def take_picture(page: Path) -> bytes:
    """The page up to the end of its first passage, as PNG."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    program = os.environ.get("ROLEBUNDLE_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        # Passages below the window are not laid out, so the window is high.
        size = {"width": WIDTH, "height": 3_000}
        view = browser.new_page(viewport=size, color_scheme="light")
        view.goto(page.resolve().as_uri())
        end = view.locator("#passage-1").evaluate("part => part.getBoundingClientRect().bottom")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": int(end)}
        picture = Image.open(BytesIO(view.screenshot(clip=clip)))
    smaller = BytesIO()
    picture.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE).save(
        smaller, "PNG", optimize=True
    )
    return smaller.getvalue()


def main() -> None:
    """Write the files, or check them."""
    page = example_page()
    if sys.argv[1:] == ["--check"]:
        if words_of(page) != words_of(PAGE.read_text(encoding="utf-8")):
            sys.exit(f"{PAGE.name} is not up to date: run python docs/make_picture.py")
        return
    PAGE.write_text(page, encoding="utf-8")
    picture = take_picture(PAGE)
    if len(picture) > MAX_BYTES:
        sys.exit(f"the picture has {len(picture):,} bytes; at most {MAX_BYTES:,} are allowed")
    PICTURE.write_bytes(picture)


if __name__ == "__main__":
    main()
