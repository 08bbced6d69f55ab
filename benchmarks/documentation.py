"""A corpus of real documentation, from Debian packages, and questions to ask of it.

Run alone, this gathers the files into a working folder and says what there is; the other
benchmarks do the same before they measure.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

PACKAGES = (
    "linux-doc-6.1",
    "postgresql-doc-15",
    "python3.11-doc",
    "rust-doc",
    "perl-doc",
    "git-doc",
)
KEPT = frozenset({".html", ".txt", ".rst", ".pod", ".yaml"})
"""What is documentation; the rest of the packages is scripts, style sheets, fonts and pictures."""
MANUAL_FOLDER = "/usr/share/man/"
QUESTIONS = Path(__file__).with_name("questions.txt")
_DONE = "gathered"


class Missing(Exception):
    """What the benchmarks need is not on this machine."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folder that a benchmark works in: the gathered files, and room for corpus files."""

    folder: Path
    files: Path
    count: int
    size: int

    def corpus(self, name: str) -> Path:
        """Where the corpus file called ``name`` lies."""
        return self.folder / f"{name}.db"


def gather(folder: Path, sample: float = 1.0) -> Workplace:
    """Bring the packages' documentation together below ``folder``; done once a folder.

    Args:
        folder: the working folder; a part of it is named after the sample.
        sample: how much of the documentation, from 0 to 1; chosen by a hash of each path, so
            that a smaller sample is a part of every larger one.

    Raises:
        Missing: packages are not installed; the message says how to get them.
    """
    place = folder / ("all" if sample >= 1 else f"sample-{sample:g}")
    files, done = place / "documentation", place / _DONE
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        for source, relative in _sources():
            if _share(relative) < sample:
                _bring(source, files / relative)
        done.touch()
    sizes = [path.stat().st_size for path in files.rglob("*") if path.is_file()]
    return Workplace(place, files, len(sizes), sum(sizes))


def questions(n: int | None = None) -> list[str]:
    """The first ``n`` of the hand-written questions, or all of them; topics take turns."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line and not line.startswith("#")]
    if n is not None and n > len(found):
        raise Missing(f"{QUESTIONS.name} has {len(found)} questions, not {n}")
    return found[:n]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that every benchmark takes."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(tempfile.gettempdir()) / "rolebundle-benchmarks",
        help="working folder, about 4 GB for the whole corpus (default: %(default)s)",
    )
    parser.add_argument(
        "--sample",
        type=_fraction,
        default=1.0,
        metavar="FRACTION",
        help="take this part of the files, always the same ones, for a quick run (default: all)",
    )


def print_table(rows: list[tuple[str, str, str]]) -> None:
    """Rows of (what, figure, required), as Markdown."""
    print("| what | figure | required |\n| --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("more than 0, at most 1")
    return value


def _sources() -> Iterator[tuple[Path, str]]:
    """Every file of documentation, and the path that it gets: package and path inside of it."""
    listings = {package: _listing(package) for package in PACKAGES}
    missing = [package for package, listing in listings.items() if not listing]
    if missing:
        raise Missing(
            f"not installed: {', '.join(missing)}\n"
            f"install what is missing: sudo apt-get install {' '.join(missing)}"
        )
    for package, listing in listings.items():
        for name in listing:
            path = Path(name)
            if _kept(name) and path.is_file() and not path.is_symlink():
                yield path, f"{package}/{name.removesuffix('.gz').removeprefix('/usr/share/')}"


def _listing(package: str) -> list[str]:
    try:
        found = subprocess.run(
            ["dpkg", "-L", package], capture_output=True, text=True, check=False
        ).stdout.splitlines()
    except FileNotFoundError:
        raise Missing("these benchmarks gather their corpus from Debian packages") from None
    # A container's dpkg may be told to leave /usr/share/doc out: listed, and not there.
    return found if any(_kept(name) and Path(name).is_file() for name in found) else []


def _kept(name: str) -> bool:
    suffix = Path(name.removesuffix(".gz")).suffix
    # The kernel's descriptions of its interfaces are text files without a suffix, in ABI.
    return suffix in KEPT or name.startswith(MANUAL_FOLDER) or "/Documentation/ABI/" in name


def _share(relative: str) -> float:
    return int.from_bytes(blake2b(relative.encode(), digest_size=8).digest()) / 2**64


def _bring(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".gz":
        with gzip.open(source) as packed, target.open("wb") as stream:
            shutil.copyfileobj(packed, stream)
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def main() -> None:
    """Gather, and say what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    try:
        place = gather(arguments.folder, arguments.sample)
    except Missing as problem:
        sys.exit(str(problem))
    print(f"{place.count:,} files, {place.size / 1e6:,.0f} MB in {place.files}")
    print(f"{len(questions())} questions in {QUESTIONS.name}")


if __name__ == "__main__":
    main()
