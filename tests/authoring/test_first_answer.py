"""From `pip install` to the first good answer on a new folder of 1,000 files, in at most 5 commands."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import venv
from pathlib import Path

import pytest

from support.commands import CHECKOUT

ROLE = "release-manager"
COMMANDS = (
    f"pip install {shlex.quote(str(CHECKOUT))}",
    f"rolebundle init notes --role {ROLE} --db notes.db",
    "rolebundle ingest notes --db notes.db",
    f'rolebundle retrieve "How is a release taken back?" --role {ROLE} --db notes.db',
)
"""Those of the README, which installs what is in the folder."""
SUBJECTS = {
    "garden": "seed compost hedge pruning greenhouse slug harvest watering lawn mulch",
    "kitchen": "dough oven simmer recipe butter yeast stock pastry knife larder",
    "boats": "oar jetty mooring hull tide varnish sail rudder bilge anchor",
    "hiring": "interview candidate salary reference contract trainee advert panel offer probation",
    "house": "roof boiler gutter plaster radiator fuse paint damp insulation window",
    "travel": "train ticket luggage hostel border ferry timetable map visa coast",
    "reading": "novel chapter essay author library quotation plot poem margin translation",
    "music": "chord rehearsal violin score tempo choir concert tuning scale bow",
    "money": "invoice budget tax receipt account savings pension rent insurance transfer",
    "releases": "release version changelog milestone rollback deprecation upgrade blocker tag freeze",
}


PEOPLE = "Ana Ben Cleo Dan Eva".split()
SENTENCES = (
    "{3} wants to look at the {0} first, and then at the {1}.",
    "The {0} is late again; {3} asks {4} about the {1} and the {2}.",
    "We should not start with the {0} before the {1} is done.",
    "On Monday {3} and {4} talked about the {0}, the {1} and the {2}.",
    "The {1} was fine, but the {0} broke and nobody knows why.",
    "{4} has a list of what is open: {0}, {1}, {2}.",
)


def write_notes(folder: Path) -> None:
    """A thousand notes: ten subjects, whose own words are in sentences of all of them."""
    chance = random.Random(7)
    for subject, words in SUBJECTS.items():
        own = words.split()
        (folder / subject).mkdir(parents=True)
        for number in range(100):
            lines = [f"# {chance.choice(own).capitalize()} and {chance.choice(own)}"]
            for _ in range(chance.randint(2, 5)):
                names = (*chance.sample(own, 3), *chance.sample(PEOPLE, 2))
                lines.append(chance.choice(SENTENCES).format(*names))
            (folder / subject / f"{number:03}.md").write_text("\n\n".join(lines), encoding="utf-8")


def test_the_readme_has_these_commands() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()
    start = readme.index(COMMANDS[1])
    assert tuple(readme[start : start + 3]) == COMMANDS[1:]


@pytest.mark.slow
def test_four_commands_from_pip_install_to_a_good_answer(tmp_path: Path) -> None:
    assert len(COMMANDS) <= 5
    write_notes(tmp_path / "notes")
    venv.create(tmp_path / "venv", with_pip=True)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "ROLEBUNDLE_DB": str(tmp_path / "corpus.db"),
    }
    out = ""
    for command in (*COMMANDS[:-1], f"{COMMANDS[-1]} --format json"):
        result = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert result.returncode == 0, (command, result.stderr)
        out = result.stdout
    bundle = json.loads(out)
    sources = [chunk["source_id"] for chunk in bundle["selected"]]
    assert sources[0] == "notes-releases"
