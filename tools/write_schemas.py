"""The contracts as JSON Schema; `python tools/write_schemas.py docs/schema` writes them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rolebundle.contracts import (
    bundle,
    compact_bundle,
    evaluation,
    gate,
    ingest,
    lookup,
    memory,
    overlay,
    policy,
    request,
    upkeep,
    verification,
    why,
)
from rolebundle.contracts.base import Contract
from rolebundle.contracts.request import ALIASES

SCHEMAS: dict[str, type[Contract]] = {
    "approved-contracts": gate.ApprovedContracts,
    "audit-row": policy.AuditRow,
    "audit-rows": policy.AuditRows,
    "audit-settings": policy.AuditSettings,
    "audit-verification": policy.AuditVerification,
    "backup-manifest": upkeep.BackupManifest,
    "backup-result": upkeep.BackupReport,
    "bundle": bundle.RetrievalBundle,
    "compact-bundle": compact_bundle.CompactBundle,
    "comparison": why.Comparison,
    "check-answer": memory.CheckAnswer,
    "check-request": memory.CheckRequest,
    "decision": memory.DecisionRecord,
    "decision-list": memory.DecisionList,
    "doctor": upkeep.DoctorReport,
    "embed-result": upkeep.EmbedResult,
    "evaluation": evaluation.EvalReport,
    "gate-contract": gate.GateContract,
    "gate-report": gate.GateReport,
    "gate-start": gate.GateStart,
    "golden-set": evaluation.GoldenSet,
    "ingest-result": ingest.IngestReport,
    "init-report": upkeep.InitReport,
    "found-lines": lookup.FoundLines,
    "listing": lookup.Listing,
    "lookup": lookup.Lookup,
    "lookups": lookup.Lookups,
    "mark": memory.MarkRecord,
    "mark-list": memory.MarkList,
    "mark-request": memory.MarkRequest,
    "overlay": overlay.Overlay,
    "overlay-draft": upkeep.OverlayDraftReport,
    "overlay-details": overlay.OverlayDetails,
    "overlay-lint": overlay.OverlayLint,
    "overlay-list": overlay.OverlayList,
    "policy": policy.Policy,
    "policy-change": policy.PolicyChange,
    "policy-lint": overlay.PolicyLint,
    "policy-summary": policy.PolicySummary,
    "purge-preview": upkeep.PurgePreview,
    "purge-result": upkeep.PurgeResult,
    "quarantine-details": ingest.QuarantineDetails,
    "quarantine-list": ingest.QuarantineList,
    "publish-result": upkeep.PublishReport,
    "pull-result": upkeep.PullReport,
    "receipt": upkeep.Receipt,
    "replica-manifest": upkeep.SignedManifest,
    "remembered-fact": memory.RememberedFact,
    "fact": memory.FactRecord,
    "fact-list": memory.FactList,
    "repair-result": upkeep.RepairReport,
    "restore-result": upkeep.RestoreReport,
    "role-list": overlay.RoleList,
    "root-change": ingest.RootChange,
    "root-list": ingest.RootList,
    "compare-request": request.CompareRequest,
    "grep-request": request.GrepRequest,
    "ingest-request": request.IngestRequest,
    "list-request": request.ListRequest,
    "multi-get-request": request.MultiGetRequest,
    "remember-request": memory.RememberRequest,
    "request": request.RetrievalRequest,
    "verify-request": verification.VerifyRequest,
    "why-request": request.WhyRequest,
    "status": upkeep.CorpusStatus,
    "verification": verification.Verification,
    "why": why.Why,
    "why-as-agent": why.WhyAsAgent,
}


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a contract."""
    schema = SCHEMAS[name].model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        _describe_fields(part)
    names = schema.get("properties", {})
    aliases = {alias: field for field in names for alias in ALIASES.get(field, ())}
    if name.endswith("request"):
        schema["x-aliases"] = aliases | {"camelCase": "any field may be written so"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _describe_fields(schema: dict[str, Any]) -> None:
    """Move the attributes of a docstring that gives examples to the fields of its schema.

    The text of an attribute ends with ``Example:`` and a JSON value.
    """
    description, _, attributes = schema.get("description", "").partition("\n\nAttributes:\n")
    if "Example: " not in attributes:
        return
    schema["description"] = description
    for attribute in re.split(r"\n(?=    \S)", attributes):
        name, _, lines = attribute.strip().partition(": ")
        text = " ".join(lines.split())
        field = schema["properties"][name]
        field["description"] = text[0].upper() + text[1:]
        _, _, example = text.partition(" Example: ")
        if example:
            field["examples"] = [json.loads(example)]


def schema_text(name: str) -> str:
    """Return the text of the schema's file."""
    return json.dumps(json_schema(name), indent=2, ensure_ascii=False) + "\n"


def _write(folder: str) -> None:
    for name in SCHEMAS:
        (Path(folder) / f"{name}.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    _write(sys.argv[1])
