"""A small folder of notes, with and without a corpus."""

import shutil
from pathlib import Path

import pytest

from support.commands import invoke
from support.source_tree import write_files

FILES = {
    "README.md": "# Notes of the boat club\n\nWhat the club has written down: boats, races, money.\n",
    "CHANGELOG.md": "# Changelog\n\n## 2.0\n\n### Changed\n\n- The booking release has new rules.\n",
    "meetings/2026-03-01-board.md": "# Board\n\n## Attendees\n\nAna, Ben\n\n## Agenda\n\nBudget plan "
    "for the new jetty.\n\n## Action items\n\n- Ben asks for an invoice.\n",
    "meetings/2026-04-05-board.md": "# Board\n\n## Attendees\n\nAna, Cleo\n\n## Agenda\n\nRelease of "
    "the booking calendar.\n\n## Action items\n\n- Cleo writes release notes.\n",
    "meetings/2026-05-03-board.md": "# Board\n\n## Attendees\n\nBen\n\n## Agenda\n\nThe jetty again."
    "\n\n## Action items\n\n- none\n",
    "decisions/0001-wood.md": "# Wood for the jetty\n\n## Status\n\naccepted\n\n## Context\n\nSteel "
    "rusts.\n\n## Decision\n\nWood.\n\n## Consequences\n\nIt is painted each spring.\n",
    "decisions/0002-calendar.md": "# A shared calendar\n\n## Status\n\naccepted\n\n## Context\n\n"
    "Double bookings.\n\n## Decision\n\nOne calendar.\n\n## Consequences\n\nEverybody books.\n",
    "decisions/0003-key.md": "# A key box\n\n## Status\n\nopen\n\n## Context\n\nLost keys.\n\n"
    "## Decision\n\nA box.\n\n## Consequences\n\nA code for the box.\n",
    "boats/gig.md": "# Gig\n\nFour oars, two of them repaired. The release lever sticks.\n",
    "boats/skiff.md": "# Skiff\n\nOne oar is missing.\n",
    "boats/barge.md": "# Barge\n\nToo heavy for the jetty.\n",
    "archive/jetty-2019.md": "# Jetty 2019\n\nAn older plan of the jetty.\n",
    "secret.md": "---\nsensitivity: confidential\n---\n# Zanzibar\n\nZanzibar release Zanzibar.\n",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_files(tmp_path / "notes", FILES)


@pytest.fixture(scope="session")
def _ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("authoring")
    notes = write_files(place / "notes", FILES)
    db = place / "c.db"
    assert invoke("ingest", notes, "--workers", "1", "--db", db).code == 0
    return db


@pytest.fixture
def corpus(_ingested: Path, tmp_path: Path) -> Path:
    """A copy of a corpus of the notes, without a manifest."""
    return Path(shutil.copy(_ingested, tmp_path / "c.db"))
