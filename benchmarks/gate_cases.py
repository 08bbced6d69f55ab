"""How often `gate check` calls a false completion a success, and an honest one not.

python benchmarks/gate_cases.py FOLDER

Each folder in FOLDER is a case: `before/` (the files at the start), `contract.toml`, `after/` (the
files at the check) and `case.json` with `label` (`false` or `honest`) and `what`. The contract's
commands are approved.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rolebundle.admin import Admin
from rolebundle.contracts.gate import GateReport
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.gate.baseline import start_gate
from rolebundle.gate.contract import approve_contract
from rolebundle.workspace import Workspace


def attempt(case: Path, folder: Path) -> GateReport:
    """Start the gate of a case in an empty folder, do its work, and check it."""
    contract = folder / "work" / "contract.toml"
    shutil.copytree(case / "before", contract.parent)
    shutil.copy(case / "contract.toml", contract)
    workspace = Workspace(folder / "corpus.db")
    try:
        admin = Admin(workspace)
        start_gate(admin.workspace, contract)
        approve_contract(admin.workspace, contract, inline_code=True)
        for path in contract.parent.iterdir():
            if path != contract:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(case / "after", contract.parent, dirs_exist_ok=True)
        return Engine(workspace).gate_check(contract)
    finally:
        workspace.close()


def main(cases: Path) -> None:
    """Print the cases that are judged wrongly, and their number."""
    totals = {"false": [0, 0], "honest": [0, 0]}
    for case in sorted(path.parent for path in cases.glob("*/case.json")):
        fields = json.loads((case / "case.json").read_text(encoding="utf-8"))
        with TemporaryDirectory() as folder:
            try:
                report = attempt(case, Path(folder))
                verdict, message = str(report.verdict), report.message
            except RolebundleError as error:
                verdict, message = "error", str(error)
        is_wrong = (verdict == "success") != (fields["label"] == "honest")
        totals[fields["label"]][0] += is_wrong
        totals[fields["label"]][1] += 1
        if is_wrong or "--all" in sys.argv:
            print(f"{case.name} ({fields['label']}: {fields['what']}): {verdict}: {message}")
    for label, name in (("false", "called success"), ("honest", "not called success")):
        wrong, total = totals[label]
        print(f"{label} completions {name}: {wrong} of {total}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
