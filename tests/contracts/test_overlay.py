"""The overlay: the reference's load unmodified, and what makes no sense is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.schema import json_schema
from rolebundle.policy.overlays import share_weights, validate
from support.commands import CHECKOUT
from support.corpora import overlay

REFERENCE_ROLES = (
    "competitive-analyst", "critic-reviewer", "docs-architect", "product-strategist",
    "security-reviewer",
)  # fmt: skip


@pytest.mark.parametrize("role", REFERENCE_ROLES)
def test_the_references_overlays_load_unmodified(shared: Path, role: str) -> None:
    path = shared / "compat" / "knowledge-core" / "roles" / f"{role}.json"
    loaded = Overlay.model_validate_json(path.read_text("utf-8"))
    assert loaded.role_id == role
    plain = json.loads(path.read_text("utf-8"))
    ours = loaded.model_dump(exclude_none=True)
    for section, fields in plain.items():
        for name in fields if isinstance(fields, dict) else ():
            assert name in ours[section], f"{section}.{name} is lost"


SCHEMA = json_schema("overlay")
PARTS = {"Overlay": SCHEMA, **SCHEMA["$defs"]}
KEYS = [(part, key) for part, schema in PARTS.items() for key in schema["properties"]]
# Parts are described by their own keys.
PLAIN_KEYS = [(part, key) for part, key in KEYS if "$ref" not in PARTS[part]["properties"][key]]
_DEFAULT = re.compile(r"Default: (?P<default>[^,;]+?)(?:[,;].*)?\.(?: Example: |$)")
_REQUIRED = re.compile(r"[Rr]equired\.")


class TestDescriptions:
    """The schema is enough to write an overlay in an editor."""

    @pytest.mark.parametrize(("part", "key"), KEYS)
    def test_each_key_has_a_description_with_its_default(self, part: str, key: str) -> None:
        field = PARTS[part]["properties"][key]
        stated = _DEFAULT.search(field["description"])
        assert stated or _REQUIRED.search(field["description"])
        if stated and isinstance(field.get("default"), bool | int | float | str):
            has_default = field["default"] or field["default"] is False
            assert stated["default"] == (
                json.dumps(field["default"]).strip('"') if has_default else "none"
            )

    @pytest.mark.parametrize(("part", "key"), PLAIN_KEYS)
    def test_each_key_has_a_valid_example(self, part: str, key: str) -> None:
        field = PARTS[part]["properties"][key]
        [example] = field["examples"]
        assert example != field.get("default"), "an example that changes nothing"
        value = {key: example}
        if part == "Overlay":
            overlay(**value)
        elif part == "SourceRule":
            rule = value if key in ("pattern", "path") else {"pattern": "x", **value}
            overlay(source_policy={"preferred_sources": [rule]})
        else:
            section = next(
                name
                for name, ref in SCHEMA["properties"].items()
                if ref.get("$ref") == f"#/$defs/{part}"
            )
            checked = validate(
                share_weights({"version": "1.0", "role_id": "a", section: value}, {section: value})[
                    0
                ]
            )
            assert isinstance(checked, Overlay), checked


def test_the_documents_table_has_every_key() -> None:
    """The section of docs/overlays.md names every key of the schema."""
    text = (CHECKOUT / "docs" / "overlays.md").read_text(encoding="utf-8")
    section = text.partition("## Every key\n")[2].partition("\n## ")[0]
    documented = {part for name in re.findall(r"`([\w$.]+)`", section) for part in name.split(".")}
    assert {key for part in (SCHEMA, *PARTS.values()) for key in part["properties"]} <= documented


@pytest.mark.parametrize("rule", [{}, {"pattern": "a", "path": "b"}, {"path": None}])
def test_a_rule_has_either_a_pattern_or_a_path(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="must have either pattern or path"):
        overlay(source_policy={"forbidden_sources": [rule]})


class TestWeights:
    def weights(self, total: float) -> dict[str, Any]:
        return {
            "retrieval_policy": {
                "lexical_weight": total - 0.6,
                "semantic_weight": 0.2,
                "metadata_weight": 0.2,
                "rerank_weight": 0.2,
            }
        }

    @pytest.mark.parametrize("total", [0.991, 1.0, 1.009])
    def test_they_sum_to_one_within_a_hundredth(self, total: float) -> None:
        overlay(**self.weights(total))

    @pytest.mark.parametrize("total", [0.98, 1.02, 0.9, 1.2])
    def test_or_are_refused_with_what_they_sum_to(self, total: float) -> None:
        with pytest.raises(ValidationError, match=f"is {total:.4g}"):
            overlay(**self.weights(total))


def forbidding(**rule: Any) -> dict[str, Any]:
    return {"source_policy": {"forbidden_sources": [rule]}}


REFUSED: list[dict[str, Any]] = [
    # Unknown keys, anywhere.
    {"surprise": 1},
    {"vocabulary": {"surprise": []}},
    {"source_policy": {"forbidden_source": []}},
    forbidding(patern="x"),
    {"retrieval_policy": {"top_k": 3}},
    # Values that make no sense.
    {"version": "2.0"},
    {"version": None},
    *({"role_id": value} for value in (None, "Reviewer", "../etc/passwd", "r" * 65)),
    {"extends": "A B"},
    forbidding(pattern=" "),
    forbidding(reason="no pattern"),
    *(forbidding(path=path) for path in ("/docs/**", "./docs/**", "../docs", "docs/", "", " docs")),
    {"source_policy": {"preferred_sources": [{"pattern": "x", "boost": 0}]}},
    {"source_policy": {"trust_tier_boosts": {"supreme": 2.0}}},
    {"source_policy": {"domain_boosts": {"x": -1.0}}},
    {"vocabulary": {"boost_phrases": [""]}},
    {"vocabulary": {"preferred_terms": ["x" * 501]}},
    {"vocabulary": {"synonyms": {"a": "b"}}},
    *(
        {"retrieval_policy": {"lexical_weight": value}}
        for value in (-0.1, 1.1, float("nan"), float("inf"), "0.3", True)
    ),
    {"retrieval_policy": {"max_selected_chunks": 0}},
    {"retrieval_policy": {"max_selected_chunks": 1001}},
    {"retrieval_policy": {"freshness_max_age_days": 0}},
    {"retrieval_policy": {"stale_penalty": 1.01}},
    {"retrieval_policy": {"min_score": -1}},
    {"retrieval_policy": {"fusion": "borda"}},
    {"retrieval_policy": {"require_source_diversity": "yes"}},
]


@pytest.mark.parametrize("fields", REFUSED, ids=str)
def test_what_is_refused(fields: dict[str, Any]) -> None:
    plain = {"version": "1.0", "role_id": "reviewer"} | fields
    with pytest.raises(ValidationError):
        Overlay.model_validate({key: value for key, value in plain.items() if value is not None})
