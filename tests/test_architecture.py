"""The source itself: no import cycle between files, and SQL in the storage package alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "rolebundle"
FILES = sorted(PACKAGE.rglob("*.py"))
STORAGE = PACKAGE / "storage"
OUTSIDE_STORAGE = [path for path in FILES if STORAGE not in path.parents]
STORAGE_LIBRARIES = {"apsw", "sqlite_vec", "sqlite3"}

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


@cache
def source_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(source_of(path))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}


# An import with its names, or a block that only a type checker runs.
IMPORT = re.compile(
    r"^( *)(?:if [\w.]*TYPE_CHECKING:\n(?:(?:\1 +.*)?\n)+|((?:from [\w.]+ )?import (?:\([^)]*\)|.*)))",
    re.MULTILINE,
)


def imports(source: str) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import, also delayed ones, but none that only a type checker runs.

    To parse whole files would take ten times as long.
    """
    for _, statement in IMPORT.findall(source):
        for node in ast.parse(statement).body:
            assert isinstance(node, ast.Import | ast.ImportFrom), statement
            yield node


def imported_modules(source: str, modules: set[str]) -> set[str]:
    found = set()
    for node in imports(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert not node.level, "imports are absolute"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in modules else str(node.module))
    return found & modules


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components with more than one file (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for imported in sorted(graph[name]):
            if imported not in index:
                visit(imported)
            if imported in stack:
                low[name] = min(low[name], low[imported])
        if low[name] == index[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1 or name in graph[name]:
                components.append(sorted(component))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return components


def test_no_import_cycle_between_files() -> None:
    graph = {module_name(path): imported_modules(source_of(path), MODULES) for path in FILES}
    assert sum(map(len, graph.values())) > len(graph), "the graph has edges"
    assert cycles(graph) == []


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


def sql_statements(path: Path, tree: ast.AST) -> list[str]:
    return [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {text[:60]!r}"
        for line, text in string_literals(tree)
        if SQL.match(text)
    ]


def test_sql_is_in_storage_alone() -> None:
    assert [
        statement
        for path in OUTSIDE_STORAGE
        if SQL_WORD.search(source_of(path))
        for statement in sql_statements(path, tree_of(path))
    ] == []


def test_sqlite_is_imported_in_storage_alone() -> None:
    assert {
        f"{path.relative_to(PACKAGE.parent)} imports {library}"
        for path in OUTSIDE_STORAGE
        if any(library in source_of(path) for library in STORAGE_LIBRARIES)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for library in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
        )
        if library.split(".")[0] in STORAGE_LIBRARIES
    } == set()
