"""Count the violations that `check` names, and the harmless intents that it warns of or blocks.

Run: python benchmarks/check_intents.py FILE

The file is JSON: ``decisions`` (text, about, commands, effect), ``violations`` (intent or command,
and the number of the decision that is violated) and ``harmless`` (intent or command). Each is
checked with words only, with the included model, and with the model of an installed extra. *Named*
is a violation with its decision among those that may apply; *quoted* counts those that are quoted
for information, too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from rolebundle.admin import Admin
from rolebundle.contracts.memory import CheckAnswer, CheckRequest, NewDecision
from rolebundle.embedding.provider import EmbeddingProvider, ProviderSpec, Unavailable
from rolebundle.embedding.registry import provider_for
from rolebundle.engine import Engine
from rolebundle.errors import EmbedderError
from rolebundle.memory.decisions import record_decision
from rolebundle.workspace import Workspace


def counts(engine: Engine, examples: dict[str, Any], *, verbose: bool) -> dict[str, int]:
    """How many examples have which outcome."""

    def asked(example: dict[str, Any]) -> CheckAnswer:
        fields = {name: example[name] for name in CheckRequest.model_fields if name in example}
        answer = engine.check(CheckRequest.model_validate(fields))
        if verbose:
            found = [(one.id, one.match, one.verdict, one.words) for one in answer.decisions]
            print(example, answer.verdict, found, sep="\n    ")
        return answer

    result = dict.fromkeys(("named", "quoted", "warned", "stopped", "blocked"), 0)
    for example in examples["violations"]:
        wanted = f"shared-{example['decision'] + 1}"
        found = [decision for decision in asked(example).decisions if decision.id == wanted]
        result["named"] += any(decision.verdict for decision in found)
        result["quoted"] += bool(found)
    for example in examples["harmless"]:
        verdict = asked(example).verdict
        result["warned"] += verdict != "none_found"
        result["stopped"] += verdict in ("require_approval", "block")
        result["blocked"] += verdict == "block"
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print each answer")
    arguments = parser.parse_args()
    examples = json.loads(arguments.file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "c.db"
        with Admin(db) as admin:
            for decision in examples["decisions"]:
                record_decision(admin.workspace, NewDecision(decided_by="Ana", **decision))
        for model in ("words only", "static", "onnx"):
            if model == "words only":
                provider: EmbeddingProvider = Unavailable(EmbedderError("no_model", model, ""))
            else:
                provider = provider_for(ProviderSpec(model))
            with Engine(Workspace(db, provider)) as engine:
                found = counts(engine, examples, verbose=arguments.verbose)
            print(model, f"of {len(examples['violations'])}, {len(examples['harmless'])}:", found)


if __name__ == "__main__":
    main()
