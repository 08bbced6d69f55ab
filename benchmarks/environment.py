"""What the packages of an environment weigh, and which of them ask for each.

Run, with the Python of the environment: python benchmarks/environment.py

`docs/environment.txt` is its output for the README's first command. The megabytes are those of
files, with the compiled ones; `du` counts whole blocks of the disk and shows more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.metadata import Distribution, distributions
from pathlib import Path

OURS = "rolebundle"
"""Its extras are installed, too."""


def name_of(requirement: str) -> str:
    """The name of a package, as indexes compare it."""
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def megabytes(package: Distribution) -> float:
    """The size of the files that an installer recorded."""
    files = (Path(str(package.locate_file(file))) for file in package.files or ())
    return sum(file.stat().st_size for file in files if file.is_file()) / 1_000_000


def main() -> None:
    """Print a line for each package, the largest first, and the sum."""
    packages = {name_of(package.metadata["Name"]): package for package in distributions()}
    sizes = {name: megabytes(package) for name, package in packages.items()}
    asked_for_by: dict[str, set[str]] = defaultdict(set)
    for name, package in packages.items():
        needed = (text for text in package.requires or () if name == OURS or "extra ==" not in text)
        for requirement in needed:
            asked_for_by[name_of(requirement)].add(name)
    print(f"{'package':28} {'MB':>6}  asked for by")
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        print(f"{name:28} {sizes[name]:6.1f}  {', '.join(sorted(asked_for_by[name]))}".rstrip())
    print(f"{f'all {len(sizes)}':28} {sum(sizes.values()):6.1f}")


if __name__ == "__main__":
    main()
