"""What one `retrieve` runs through: modules, their classes and type aliases, their lines of code.

Run: python tools/trace_retrieve.py [--verbose]

A module counts if one of its functions runs while a request with a role is answered by words and
meaning from a corpus of sample_corpus/. Of these modules all classes, all aliases of types and all
lines of code count.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tempfile
import tokenize
from pathlib import Path
from types import FrameType
from typing import Any

from rolebundle import Engine, RetrievalRequest

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "rolebundle"
CAMEL_CASE = re.compile(r"_?[A-Z]\w*[a-z]\w*")
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}


def modules_of(request: RetrievalRequest) -> list[Path]:
    """The files of the package that run while a request is answered."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "sample.db"
        # In a process of its own, because a function that has a result from before does not run.
        ingest = [
            "-m",
            "rolebundle",
            "ingest",
            str(CHECKOUT / "sample_corpus"),
            "--db",
            str(database),
        ]
        subprocess.run([sys.executable, *ingest], check=True, capture_output=True)
        overlays = CHECKOUT / "sample_corpus" / "overlays"
        with Engine(database, overlay_folders=[overlays]) as engine:
            sys.setprofile(note)
            try:
                engine.retrieve(request)
            finally:
                sys.setprofile(None)
    return sorted(path for path in map(Path, files) if PACKAGE in path.parents)


def is_alias(node: ast.stmt) -> bool:
    """Whether a statement gives a type a further name, such as ``Lane = Literal["lexical"]``."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and CAMEL_CASE.fullmatch(node.targets[0].id) is not None
        and isinstance(node.value, ast.Subscript | ast.BinOp | ast.Name | ast.Attribute)
    )


def code_lines(source: str) -> int:
    """The lines that have a token which is neither a comment nor a string alone, as a docstring."""
    lines: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            statement.append(token)
        elif token.type == tokenize.NEWLINE:
            if [one.type for one in statement] != [tokenize.STRING]:
                lines.update(n for one in statement for n in range(one.start[0], one.end[0] + 1))
            statement = []
    return len(lines)


def main() -> None:
    """Print the four figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--verbose", action="store_true", help="list the modules")
    arguments = parser.parse_args()
    request = RetrievalRequest(
        task="Can a stolen tablet replay a token?", role="mossline-security-reviewer"
    )
    modules = modules_of(request)
    sources = {path: path.read_text(encoding="utf-8") for path in modules}
    lines = {path: code_lines(source) for path, source in sources.items()}
    trees = [*map(ast.parse, sources.values())]
    if arguments.verbose:
        for path, count in lines.items():
            print(f"{count:5} {path.relative_to(CHECKOUT)}")
    classes = sum(isinstance(n, ast.ClassDef) for tree in trees for n in ast.walk(tree))
    aliases = sum(is_alias(node) for tree in trees for node in tree.body)
    print(f"modules {len(modules)}")
    print(f"classes {classes}")
    print(f"aliases {aliases}")
    print(f"lines {sum(lines.values())}")


if __name__ == "__main__":
    main()
