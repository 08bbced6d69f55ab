"""The names of the tests in a file, to check what documents and tables say of them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent.parent


@cache
def names_of_tests(file: str) -> frozenset[str]:
    """The names of the tests and test classes in a file.

    Args:
        file: its path from the checkout.
    """
    tree = ast.parse((CHECKOUT / file).read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):  # the TestCase of a state machine
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(name for name in names if name.lower().startswith("test"))
