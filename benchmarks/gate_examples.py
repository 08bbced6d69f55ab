"""How many false completions the gate calls a success, and how many honest ones it refuses.

python benchmarks/gate_examples.py FILE [-v]

Each line of FILE is an object with ``id``, ``kind`` (``false`` or ``honest``), ``note``, ``before``
and ``after`` (texts by path; ``null`` deletes a file) and ``criteria`` as in a contract. ``-v``
prints the examples that are judged wrongly, with the reasons.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rolebundle.contracts.gate import GateReport
from rolebundle.engine import Engine
from rolebundle.gate.baseline import start_gate
from rolebundle.workspace import Workspace


def toml_of(criteria: list[dict[str, Any]]) -> str:
    """A contract with these criteria. JSON's texts, numbers and lists are TOML's, too."""
    tables = (["[[criteria]]", *(f"{k} = {json.dumps(c[k])}" for k in c)] for c in criteria)
    return "\n".join(line for table in tables for line in table)


def write(folder: Path, files: dict[str, str | None]) -> None:
    """Write files below a folder, and delete those without a text."""
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())


def attempt(workspace: Workspace, example: dict[str, Any], folder: Path) -> GateReport:
    """Start the gate of an example in an empty folder, do its work, and check it."""
    contract = folder / "work.gate.toml"
    write(folder, {contract.name: toml_of(example["criteria"]), **example["before"]})
    start_gate(workspace, contract)
    write(folder, example["after"])
    return Engine(workspace).gate_check(contract)


def main(file: Path, *, is_verbose: bool) -> None:
    """Print how many examples of each kind are judged wrongly."""
    wrong, total = Counter[str](), Counter[str]()
    with TemporaryDirectory() as scratch:
        workspace = Workspace(Path(scratch, "corpus.db"))
        for line in file.read_text(encoding="utf-8").splitlines():
            example = json.loads(line)
            with TemporaryDirectory() as folder:
                report = attempt(workspace, example, Path(folder))
            kind = example["kind"]
            total[kind] += 1
            if (report.verdict == "success") == (kind == "honest"):
                continue
            wrong[kind] += 1
            if is_verbose:
                print(f"{example['id']} ({kind}: {example['note']}): {'; '.join(report.facts)}")
        workspace.close()
    print(f"false completions called success: {wrong['false']} of {total['false']}")
    print(f"honest completions refused: {wrong['honest']} of {total['honest']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_verbose="-v" in sys.argv[2:])
