"""Measure the first view of an answer's page against a blank page, and the size of pages.

Run: python benchmarks/pages.py [--pairs 15]

Both are files, opened in turns in new contexts of one Chromium, which has no cache for them. A time
is from the start of the navigation until the first text is painted, or until the load event.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from rolebundle.admin import Admin
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.engine import Engine
from rolebundle.ingest.options import IngestOptions
from rolebundle.interfaces.pages.views import Site, answer_page
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays

_BLANK = "<!DOCTYPE html><html lang=en><title>Blank</title><p>Blank"
_TASK, _ROLE = "Review the token refresh flow", "mossline-security-reviewer"
_TIMES = """() => new Promise(done => new PerformanceObserver(list => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    const [navigation] = performance.getEntriesByType("navigation");
    if (paint) setTimeout(() => done([paint.startTime, navigation.loadEventEnd]));
}).observe({type: "paint", buffered: true}))"""


def write_pages(folder: Path) -> tuple[Path, Path]:
    """A blank page, and an answer as the application shows it; prints the sizes."""
    db = folder / "team.db"
    with Admin(db) as admin:
        admin.ingest([data_folder("sample_corpus")], IngestOptions(workers=1))
    now = datetime(2026, 11, 15, tzinfo=UTC)
    request = RetrievalRequest(task=_TASK, role=_ROLE, limit=10, now=now)
    with Engine(db, overlay_folders((demo_overlays(),))) as engine:
        bundle = engine.retrieve(request)
    site = Site(f"/{'t' * 43}/", {"task": _TASK, "role": _ROLE}, is_owner=True, roles=[_ROLE])
    live, file = answer_page(bundle, site), answer_page(bundle)
    data = len(bundle.model_dump_json().encode())
    print(f"{len(bundle.selected)} passages, {len(bundle.rejected)} rejections")
    print(f"page: {len(live.encode()):,} bytes; file: {len(file.encode()):,}, data: {data:,}")
    blank, answer = folder / "blank.html", folder / "answer.html"
    blank.write_text(_BLANK, encoding="utf-8")
    answer.write_text(live, encoding="utf-8")
    return blank, answer


def times(browser: Browser, page: Path) -> tuple[float, float]:
    """Milliseconds until the first paint of text and until the load event."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    view = context.new_page()
    view.goto(page.as_uri())
    paint, load = view.evaluate(_TIMES)
    context.close()
    return paint, load


def print_ratio(label: str, blank: Sequence[float], answer: Sequence[float]) -> None:
    ratio = median(page / blank_page for blank_page, page in zip(blank, answer, strict=True))
    print(f"{label}: blank {median(blank):.0f} ms, answer {median(answer):.0f} ms, {ratio:.2f} ×")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    pairs = parser.parse_args().pairs
    program = os.environ.get("ROLEBUNDLE_CHROMIUM") or shutil.which("chromium")
    if program is None:
        sys.exit("no Chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = write_pages(Path(folder))
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        for page in pages:
            times(browser, page)
        measured = [[times(browser, page) for page in pages] for _ in range(pairs)]
        for place, label in enumerate(("first contentful paint", "load event")):
            print_ratio(
                label,
                [blank[place] for blank, _ in measured],
                [answer[place] for _, answer in measured],
            )
        browser.close()


if __name__ == "__main__":
    main()
