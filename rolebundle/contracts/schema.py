"""The contracts as JSON Schema; `python -m rolebundle.contracts.schema docs/schema` writes them."""

from __future__ import annotations

import json
import re
from typing import Any

from rolebundle.contracts import (
    audit,
    authoring,
    backup,
    bundle,
    compact,
    comparison,
    decisions,
    doctor,
    embedding,
    evaluation,
    facts,
    gate,
    ingest,
    lint,
    lookup,
    marks,
    operation_requests,
    overlay,
    policy,
    purge,
    quarantine,
    replay,
    replica,
    request,
    roles,
    roots,
    scopes,
    status,
    verification,
    why,
)
from rolebundle.contracts.base import Contract
from rolebundle.contracts.request import ALIASES

SCHEMAS: dict[str, type[Contract]] = {
    "approved-contracts": gate.ApprovedContracts,
    "audit-row": audit.AuditRow,
    "audit-rows": audit.AuditRows,
    "audit-settings": audit.AuditSettings,
    "audit-verification": audit.AuditVerification,
    "backup-manifest": backup.BackupManifest,
    "backup-result": backup.BackupReport,
    "bridges": scopes.BridgeReport,
    "bundle": bundle.RetrievalBundle,
    "collected-audits": audit.CollectedAudits,
    "compact-bundle": compact.CompactBundle,
    "comparison": comparison.Comparison,
    "check-answer": decisions.CheckAnswer,
    "check-request": decisions.CheckRequest,
    "decision": decisions.DecisionRecord,
    "decision-list": decisions.DecisionList,
    "doctor": doctor.DoctorReport,
    "embed-plan": embedding.EmbedPlan,
    "embed-result": embedding.EmbedResult,
    "embedding-indexes": embedding.EmbeddingIndexes,
    "evaluation": evaluation.EvalReport,
    "evaluation-comparison": evaluation.EvalComparison,
    "formats": ingest.FormatList,
    "gate-contract": gate.GateContract,
    "gate-report": gate.GateReport,
    "gate-start": gate.GateStart,
    "golden-set": evaluation.GoldenSet,
    "ingest-result": ingest.IngestResult,
    "init-report": authoring.InitReport,
    "found-lines": lookup.FoundLines,
    "listing": lookup.Listing,
    "lookup": lookup.Lookup,
    "lookups": lookup.Lookups,
    "mark": marks.MarkRecord,
    "mark-list": marks.MarkList,
    "mark-request": marks.MarkRequest,
    "overlay": overlay.Overlay,
    "overlay-draft": authoring.OverlayDraftReport,
    "overlay-trial": authoring.OverlayTrial,
    "overlay-details": roles.OverlayDetails,
    "overlay-explanation": roles.OverlayExplanation,
    "overlay-lint": lint.OverlayLint,
    "overlay-list": roles.OverlayList,
    "policy": policy.PolicyFile,
    "policy-change": scopes.PolicyChange,
    "policy-lint": lint.PolicyLint,
    "policy-summary": scopes.PolicySummary,
    "purge-preview": purge.PurgePreview,
    "purge-result": purge.PurgeResult,
    "quarantine-details": quarantine.QuarantineDetails,
    "quarantine-list": quarantine.QuarantineList,
    "publish-result": replica.PublishReport,
    "pull-result": replica.PullReport,
    "receipt": purge.Receipt,
    "replica-manifest": replica.SignedManifest,
    "remembered-fact": facts.RememberedFact,
    "fact": facts.FactRecord,
    "fact-list": facts.FactList,
    "repair-result": doctor.RepairReport,
    "restore-result": backup.RestoreReport,
    "role-details": roles.RoleDetails,
    "role-list": roles.RoleList,
    "root-change": roots.RootChange,
    "root-list": roots.RootList,
    "compare-request": operation_requests.CompareRequest,
    "get-request": operation_requests.GetRequest,
    "grep-request": operation_requests.GrepRequest,
    "ingest-request": operation_requests.IngestRequest,
    "list-request": operation_requests.ListRequest,
    "multi-get-request": operation_requests.MultiGetRequest,
    "remember-request": facts.RememberRequest,
    "replay-request": operation_requests.ReplayRequest,
    "request": request.RetrievalRequest,
    "role-request": operation_requests.RoleRequest,
    "verify-request": verification.VerifyRequest,
    "why-request": operation_requests.WhyRequest,
    "replay": replay.Replay,
    "status": status.CorpusStatus,
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
    from pathlib import Path

    for name in SCHEMAS:
        (Path(folder) / f"{name}.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    import sys

    _write(sys.argv[1])
