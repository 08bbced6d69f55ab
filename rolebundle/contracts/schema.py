"""The contracts as JSON Schema; `python -m rolebundle.contracts.schema docs/schema` writes them."""

from __future__ import annotations

import json
import re
from typing import Any

from rolebundle.contracts.audit import (
    AuditRow,
    AuditRows,
    AuditSettings,
    AuditVerification,
    CollectedAudits,
)
from rolebundle.contracts.authoring import (
    InitReport,
    OverlayDraftReport,
    OverlaySuggestions,
    OverlayTrial,
)
from rolebundle.contracts.backup import BackupManifest, BackupReport, RestoreReport
from rolebundle.contracts.base import Contract
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.compact import CompactBundle
from rolebundle.contracts.comparison import Comparison
from rolebundle.contracts.decisions import (
    CheckAnswer,
    CheckRequest,
    DecisionList,
    DecisionRecord,
)
from rolebundle.contracts.doctor import DoctorReport, RepairReport
from rolebundle.contracts.embedding import EmbeddingIndexes, EmbedPlan, EmbedResult
from rolebundle.contracts.evaluation import EvalComparison, EvalReport, GoldenSet
from rolebundle.contracts.facts import (
    FactList,
    FactRecord,
    RememberedFact,
    RememberRequest,
)
from rolebundle.contracts.gate import GateContract, GateReport, GateStart
from rolebundle.contracts.ingest import ApprovedManifests, FormatList, IngestResult
from rolebundle.contracts.lint import OverlayLint, PolicyLint
from rolebundle.contracts.lookup import Listing, Lookup, Lookups
from rolebundle.contracts.marks import MarkList, MarkRecord, MarkRequest
from rolebundle.contracts.operation_requests import (
    CompareRequest,
    GetRequest,
    IngestRequest,
    ListRequest,
    MultiGetRequest,
    ReplayRequest,
    RoleRequest,
    WhyRequest,
)
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.purge import PurgePreview, PurgeResult, Receipt
from rolebundle.contracts.quarantine import QuarantineDetails, QuarantineList
from rolebundle.contracts.replay import Replay
from rolebundle.contracts.replica import PublishReport, PullReport, SignedManifest
from rolebundle.contracts.request import ALIASES, RetrievalRequest
from rolebundle.contracts.roles import (
    OverlayDetails,
    OverlayExplanation,
    OverlayList,
    RoleDetails,
    RoleList,
)
from rolebundle.contracts.roots import RootChange, RootList
from rolebundle.contracts.scopes import BridgeReport, PolicyChange, PolicySummary
from rolebundle.contracts.status import CorpusStatus
from rolebundle.contracts.verification import Verification, VerifyRequest
from rolebundle.contracts.why import Why

SCHEMAS: dict[str, type[Contract]] = {
    "approved-manifests": ApprovedManifests,
    "audit-row": AuditRow,
    "audit-rows": AuditRows,
    "audit-settings": AuditSettings,
    "audit-verification": AuditVerification,
    "backup-manifest": BackupManifest,
    "backup-result": BackupReport,
    "bridges": BridgeReport,
    "bundle": RetrievalBundle,
    "collected-audits": CollectedAudits,
    "compact-bundle": CompactBundle,
    "comparison": Comparison,
    "check-answer": CheckAnswer,
    "check-request": CheckRequest,
    "decision": DecisionRecord,
    "decision-list": DecisionList,
    "doctor": DoctorReport,
    "embed-plan": EmbedPlan,
    "embed-result": EmbedResult,
    "embedding-indexes": EmbeddingIndexes,
    "evaluation": EvalReport,
    "evaluation-comparison": EvalComparison,
    "formats": FormatList,
    "gate-contract": GateContract,
    "gate-report": GateReport,
    "gate-start": GateStart,
    "golden-set": GoldenSet,
    "ingest-result": IngestResult,
    "init-report": InitReport,
    "listing": Listing,
    "lookup": Lookup,
    "lookups": Lookups,
    "mark": MarkRecord,
    "mark-list": MarkList,
    "mark-request": MarkRequest,
    "overlay": Overlay,
    "overlay-draft": OverlayDraftReport,
    "overlay-suggestions": OverlaySuggestions,
    "overlay-trial": OverlayTrial,
    "overlay-details": OverlayDetails,
    "overlay-explanation": OverlayExplanation,
    "overlay-lint": OverlayLint,
    "overlay-list": OverlayList,
    "policy-change": PolicyChange,
    "policy-lint": PolicyLint,
    "policy-summary": PolicySummary,
    "purge-preview": PurgePreview,
    "purge-result": PurgeResult,
    "quarantine-details": QuarantineDetails,
    "quarantine-list": QuarantineList,
    "publish-result": PublishReport,
    "pull-result": PullReport,
    "receipt": Receipt,
    "replica-manifest": SignedManifest,
    "remembered-fact": RememberedFact,
    "fact": FactRecord,
    "fact-list": FactList,
    "repair-result": RepairReport,
    "restore-result": RestoreReport,
    "role-details": RoleDetails,
    "role-list": RoleList,
    "root-change": RootChange,
    "root-list": RootList,
    "compare-request": CompareRequest,
    "get-request": GetRequest,
    "ingest-request": IngestRequest,
    "list-request": ListRequest,
    "multi-get-request": MultiGetRequest,
    "remember-request": RememberRequest,
    "replay-request": ReplayRequest,
    "request": RetrievalRequest,
    "role-request": RoleRequest,
    "verify-request": VerifyRequest,
    "why-request": WhyRequest,
    "replay": Replay,
    "status": CorpusStatus,
    "verification": Verification,
    "why": Why,
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
