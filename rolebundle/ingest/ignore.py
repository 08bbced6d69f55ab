"""What a walk leaves out: hidden names, what ignore files name, and what tools have generated.

Ignore files are `.gitignore`, `.ignore` and a checkout's `.git/info/exclude`, with git's rules: the
last pattern that matches counts, files of inner folders count before those of outer ones,
`.ignore` before `.gitignore`, and a checkout does not take over the `.gitignore` files above it.
What the user names is never left out itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rolebundle.storage.location import OVERLAYS_SUFFIX, PUBLISHED_MANIFEST, PUBLISHED_SUFFIX
from rolebundle.text.gitignore import GitIgnore

HIDDEN_FILE = "hidden file"
HIDDEN_FOLDER = "hidden folder"
MARKS = frozenset({".git", ".gitignore", ".ignore", "pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"})
"""Names in a folder that decide what of it is left out."""
LOCK_FILES = frozenset(
    {
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "deno.lock",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "pixi.lock",
        "Pipfile.lock",
        "conda-lock.yml",
        "Cargo.lock",
        "Gemfile.lock",
        "composer.lock",
        "go.sum",
        "flake.lock",
        "mix.lock",
        "pubspec.lock",
        "Podfile.lock",
        "Package.resolved",
        "packages.lock.json",
        "gradle.lockfile",
    }
)
FILE_NAMES = LOCK_FILES.union({PUBLISHED_MANIFEST})
"""Names of files that may be left out by their name."""
MINIFIED = (".min.js", ".min.css", ".js.map", ".css.map")
"""Endings of file names of code that a tool has compressed for browsers, and of its maps."""
_GENERATED_FOLDERS = {
    "node_modules": "dependencies",
    "bower_components": "dependencies",
    "__pycache__": "cache",
    "__pypackages__": "dependencies",
}
_PYTHON = frozenset({"pyproject.toml", "setup.py", "setup.cfg"})
_JAVASCRIPT = frozenset({"package.json", "deno.json"})
_GRADLE = frozenset({"build.gradle", "build.gradle.kts"})
_BUILD_FOLDERS = {
    "build": _PYTHON | _JAVASCRIPT | _GRADLE | {"CMakeLists.txt", "meson.build", "pubspec.yaml"},
    "dist": _PYTHON | _JAVASCRIPT,
    "target": frozenset({"Cargo.toml", "pom.xml", "build.sbt", "project.clj"}),
    "_build": frozenset({"conf.py", "mix.exs", "dune-project", "rebar.config"}),
    "_site": frozenset({"_config.yml", "_config.toml"}),
}
"""Folders of build output, each with the files beside it of which one must be there."""
_BESIDE_A_CORPUS = {OVERLAYS_SUFFIX: "overlays", PUBLISHED_SUFFIX: "published replicas"}
_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
_MAX_BYTES = 1 << 20
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Rules(NamedTuple):
    """The patterns of one ignore file.

    Attributes:
        patterns: its patterns.
        name: the file, for reports.
        is_git: whether a checkout below does not take it over.
        cut: the length of the path of its folder, with the slash.
    """

    patterns: GitIgnore
    name: str
    is_git: bool
    cut: int


def ignored_by(rules: Sequence[Rules], location: str) -> str:
    """Why ignore files leave out a path; empty if they do not.

    Args:
        rules: those of the folders above it, the outermost first.
        location: its absolute path, with a slash at the end if it is a folder.
    """
    for patterns, name, _, cut in reversed(rules):
        decision = patterns.decide(location[cut:])
        if decision is not None:
            return f"{name}: {decision.pattern}" if decision.is_left_out else ""
    return ""


def reason_for_name(name: str, siblings: Iterable[str], *, is_folder: bool) -> str:
    """Why a file or folder is left out by its name and those beside it; empty if it is not."""
    if not is_folder:
        if name == PUBLISHED_MANIFEST:
            return "published replica"
        if name.endswith(MINIFIED):
            return "minified code"
        return "lock file" if name in LOCK_FILES else ""
    if name in _GENERATED_FOLDERS:
        return _GENERATED_FOLDERS[name]
    for suffix, reason in _BESIDE_A_CORPUS.items():
        if name.endswith(suffix) and name.removesuffix(suffix) in set(siblings):
            return reason
    signs = _BUILD_FOLDERS.get(name)
    return "build output" if signs and not signs.isdisjoint(siblings) else ""


def reason_for_content(location: str, names: AbstractSet[str]) -> str:
    """Why a folder is left out by the names in it; empty if it is not."""
    if "pyvenv.cfg" in names or "conda-meta" in names:
        return "virtual environment"
    if "CACHEDIR.TAG" in names and _read(Path(location, "CACHEDIR.TAG")).startswith(
        _CACHE_SIGNATURE
    ):
        return "cache"
    return ""


def rules_of(
    location: str, path_prefix: str, names: AbstractSet[str], above: tuple[Rules, ...]
) -> tuple[Rules, ...]:
    """The rules that hold in a folder: those above it, and those of its own ignore files.

    Args:
        location: the folder.
        path_prefix: how its path is shown, with a slash at its end.
        names: the names in it, or those of them that are among ``MARKS``.
        above: the rules of the folder above.
    """
    files = [name for name in (".gitignore", ".ignore") if name in names]
    rules = list(above)
    if ".git" in names:
        rules = [rules_above for rules_above in above if not rules_above.is_git]
        files.insert(0, _exclude_file(location))
    for name in files:
        content = _read(Path(location, name)).decode("utf-8-sig", "replace")
        if content and (patterns := GitIgnore(content)):
            cut = len(location.rstrip(os.sep)) + 1
            rules.append(Rules(patterns, path_prefix + name, name != ".ignore", cut))
    return tuple(rules)


def rules_above(base: Path, start: Path) -> tuple[Rules, ...]:
    """The rules of the folders above the start of a walk.

    They begin at the top of its checkout, or else at the base. If they leave out the start, they do
    not count: the user has named it.

    Args:
        base: the folder that paths are relative to.
        start: the base, or a folder or file below it.
    """
    if (start / ".git").exists():
        return ()
    top = next((folder for folder in start.parents if (folder / ".git").exists()), base)
    rules: tuple[Rules, ...] = ()
    path = [*(folder for folder in reversed(start.parents) if folder.is_relative_to(top)), start]
    for folder, below in pairwise(path):
        rules = rules_of(str(folder), f"{folder}{os.sep}", names_in(folder), rules)
        if ignored_by(rules, f"{below}{os.sep if below.is_dir() else ''}"):
            rules = ()
    return rules


def names_in(folder: Path) -> frozenset[str]:
    """The names in a folder; none if it cannot be read."""
    try:
        return frozenset(path.name for path in folder.iterdir())
    except OSError:
        return frozenset()


def _exclude_file(location: str) -> str:
    """The path, from the top of a checkout, of the ignore file that is not under version control.

    In a linked work tree or a submodule `.git` is a file that names the folder.
    """
    top = Path(location)
    linked = _read(top / ".git").decode("utf-8", "replace").partition("gitdir: ")[2].strip()
    folder = top / linked if linked else top / ".git"
    common = _read(folder / "commondir").decode("utf-8", "replace").strip()
    return os.path.relpath(folder / common / "info" / "exclude", top)


def _read(path: Path) -> bytes:
    """The beginning of a regular file; empty if it cannot be read, or is a link."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return file.read(_MAX_BYTES) if is_file else b""
    except (OSError, ValueError):
        return b""
