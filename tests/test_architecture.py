"""The source itself: SQL is in the storage package alone. Imports are checked by import-linter."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "rolebundle"
STORAGE = PACKAGE / "storage"
OUTSIDE_STORAGE = [path for path in sorted(PACKAGE.rglob("*.py")) if STORAGE not in path.parents]

# The beginning of a statement, with a word that only SQL has in this place.
SQL = re.compile(
    r"""\s*(
    SELECT\s.+\sFROM\s | SELECT\s+(count|max|min|coalesce|exists)\s*\( | INSERT\s+(OR\s+\w+\s+)?INTO\s
    | UPDATE\s+[\w."]+\s+SET\s | DELETE\s+FROM\s | PRAGMA\s+[\w.]+ | VACUUM\b | WITH\s+\w+.*\sAS\s
    | CREATE\s+(TEMP\s+|VIRTUAL\s+|UNIQUE\s+)?(TABLE|VIEW|INDEX|TRIGGER)\s
    | DROP\s+(TABLE|VIEW|INDEX|TRIGGER)\s | ALTER\s+TABLE\s | (ATTACH|DETACH)\s+DATABASE\s
    | BEGIN(\s+(IMMEDIATE|EXCLUSIVE|DEFERRED))?\s*;?\s*$ | (COMMIT|ROLLBACK)\s*;?\s*$
    )""",
    re.VERBOSE | re.DOTALL,
)
# To parse every file takes long, and most do not contain such a word.
SQL_WORD = re.compile(
    "SELECT|INSERT|UPDATE|DELETE|PRAGMA|VACUUM|WITH|CREATE|DROP|ALTER|TACH|BEGIN|COMMIT|ROLLBACK"
)


def string_literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each string; the parts of an f-string are joined by ``?``."""
    nodes = list(ast.walk(tree))
    not_code = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            not_code |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else "?" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in not_code
        ):
            yield node.lineno, node.value


def test_sql_is_in_storage_alone() -> None:
    found = []
    for path in OUTSIDE_STORAGE:
        source = path.read_text(encoding="utf-8")
        if SQL_WORD.search(source):
            name = path.relative_to(PACKAGE.parent)
            found += [
                f"{name}:{line}: {text[:60]!r}"
                for line, text in string_literals(ast.parse(source))
                if SQL.match(text)
            ]
        assert not re.search(r"^\s*(import|from) sqlite(3|_vec)\b", source, re.MULTILINE), path
    assert found == []
