"""The contracts: bundles, overlays, requests, documents, their mistakes and schemas."""

import copy
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core.core_schema import ErrorType

from rolebundle.contracts import base, terms
from rolebundle.contracts.base import Contract, Mistake, mistakes_in
from rolebundle.contracts.bundle import RetrievalBundle
from rolebundle.contracts.ingest import DeclaredMetadata
from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.errors import UsageError
from rolebundle.interfaces.parse import request_from
from rolebundle.policy.overlays import share_weights, validate
from rolebundle.resources import data_file
from rolebundle.storage.documents import StoredDocument
from support.amounts import few_examples
from support.corpora import ask, built, document, overlay, scratch_folder
from support.fake_embedder import HashingProvider
from support.strategies import corpora, overlays, requests
from write_schemas import SCHEMAS, json_schema, schema_text

# -- The bundle: the reference's parse, ours round-trip, and one is pinned whole -------------------

GOLDEN = Path(__file__).parent.parent / "golden" / "bundle.json"


class TestTheReferences:
    @pytest.mark.parametrize("name", ["bundle-minimal", "bundle-weak"])
    def test_its_bundles_parse(self, shared: Path, name: str) -> None:
        text = (shared / "compat" / "knowledge-core" / f"{name}.json").read_text("utf-8")
        bundle = RetrievalBundle.model_validate_json(text)
        # Nothing of it is lost, and ours is only added.
        ours = bundle.model_dump(exclude_none=True)
        assert _without(json.loads(text), ours) == {}

    def test_what_reads_its_bundles_finds_its_fields_in_ours(self, shared: Path) -> None:
        folder = shared / "compat" / "knowledge-core"
        theirs = json.loads((folder / "bundle-minimal.json").read_text("utf-8"))
        ours = json.loads(GOLDEN.read_text("utf-8"))
        assert _missing_keys(theirs, ours) == []


def _without(part: Any, complete: Any) -> dict[str, Any]:
    """What of ``part`` does not stand in ``complete`` as it is."""
    return {
        name: value for name, value in part.items() if not _stands_in(value, complete.get(name))
    }


def _stands_in(part: Any, complete: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(complete, dict) and all(
            _stands_in(v, complete.get(k)) for k, v in part.items()
        )
    if isinstance(part, list):
        return len(part) == len(complete) and all(map(_stands_in, part, complete))
    return part is None or part == complete


# Counts by name differ from corpus to corpus, and these fields may be left out by either.
_FREE = {"source_breakdown"}
_OPTIONAL = {"applicable_roles", "excluded_roles", "packet_context_summary", "version"}


def _missing_keys(theirs: Any, ours: Any, place: str = "") -> list[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        missing = [f"{place}.{key}" for key in theirs if key not in ours and key not in _OPTIONAL]
        for key in theirs.keys() & ours.keys() - _FREE:
            missing += _missing_keys(theirs[key], ours[key], f"{place}.{key}")
        return missing
    if isinstance(theirs, list) and isinstance(ours, list) and theirs and ours:
        return _missing_keys(theirs[0], ours[0], f"{place}[]")
    return []


@few_examples
@given(documents=corpora(), role=overlays(), fields=requests())
def test_every_bundle_goes_to_json_and_back(
    documents: list[StoredDocument], role: Overlay, fields: dict[str, Any]
) -> None:
    provider = HashingProvider()
    with scratch_folder() as folder, built(folder, documents, provider, waiting=1) as corpus:
        bundle = ask(corpus, role, provider, **fields)
    back = RetrievalBundle.model_validate_json(bundle.model_dump_json(exclude_none=True))
    assert back == bundle
    assert json.loads(back.model_dump_json(exclude_none=True)) == json.loads(
        bundle.model_dump_json(exclude_none=True)
    )
    assert back.model_dump_json(exclude_none=True, indent=2).encode("utf-8")


def golden_bundle(folder: Path) -> str:
    """A bundle with something of everything: each code, most warnings, both lanes."""
    day = "2026-10-01T00:00:00Z"
    plan = "Rotate the signing token every thirty days and audit each rotation."
    documents = [
        document(
            "policy",
            [plan, "A lost token is revoked at once."],
            source_id="security-policy", title="Token policy", document_type="policy",
            domain="security", trust_tier="authoritative", updated_at=day,
            tags=("token", "rotation"), applicable_roles=("reviewer",),
        ),
        document("policy-2019", ["Rotate the token each year."], source_id="security-policy",
                 trust_tier="authoritative", updated_at="2019-01-01T00:00:00Z"),
        document("copy", [plan], source_id="wiki", updated_at=day),
        document("newer", ["Rotation of a token is audited by hand."], source_id="wiki",
                 trust_tier="preferred", updated_at=day, supersedes=("older.md",)),
        document("older", ["Rotation of a token is not audited."], source_id="wiki",
                 trust_tier="preferred", updated_at=day),
        document("advert", ["The best token rotation on the market."], source_id="marketing"),
        document("other-team", ["Our token rotation."], excluded_roles=("reviewer",)),
        document("far", ["Bread and butter."], updated_at=day),
        document("forwarded", ["Mail: audit the token rotation."], origin="untrusted"),
        document("shared-drive", ["Their token rotation."], origin="external"),
        document("notes", ["Token notes, первая ротация, 数据.", "A token, a token, a token."]),
    ]  # fmt: skip
    role = overlay(
        mission="Find weak spots in how secrets are kept.",
        vocabulary={
            "boost_phrases": ["signing token", "key ceremony"],
            "preferred_terms": ["token"],
            "synonyms": {"rotation": ["renewal", "replacement", "never used"]},
            "suppress_phrases": ["the best"],
        },
        source_policy={
            "preferred_sources": [{"pattern": "security", "reason": "ours", "boost": 1.8}],
            "forbidden_sources": [{"pattern": "marketing", "reason": "not evidence"}],
            "trust_tier_boosts": {"authoritative": 2.0, "general": 0.8},
        },
        retrieval_policy={
            "max_selected_chunks": 2,
            "freshness_max_age_days": 365.0,
            "stale_penalty": 1.0,
            "require_source_diversity": True,
            "max_chunks_per_source": 1,
            "min_score": 0.2,
        },
    )
    provider = HashingProvider()
    with built(folder, documents, provider, waiting=1) as corpus:
        bundle = ask(corpus, role, provider, task="audit the token rotation", action="execute")
    text = bundle.model_dump_json(exclude_none=True, indent=2)
    text = re.sub(r'("(?:latency|lexical|semantic)_ms"): [^,\n]+', r"\1: 0", text)
    text = re.sub(r'("corpus_id"): "[^"]+"', r'\1: "…"', text)
    return re.sub(r'("file"): "[^"]+"', r'\1: "corpus.db"', text) + "\n"


def test_a_whole_bundle_is_as_it_was(tmp_path: Path) -> None:
    bundle_json = golden_bundle(tmp_path)
    if os.environ.get("ROLEBUNDLE_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(bundle_json, encoding="utf-8")
    assert bundle_json == GOLDEN.read_text("utf-8"), (
        "if the change is meant: ROLEBUNDLE_UPDATE_GOLDEN=1, and read the diff"
    )


# -- The overlay: the reference's load unmodified, and what makes no sense is refused --------------

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
            values = {"version": "1.0", "role_id": "a", section: value}
            checked = validate(share_weights(values, values))
            assert isinstance(checked, Overlay), checked


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
    *({"role_id": value} for value in (None, "../etc/passwd", "r" * 65)),
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
    {"retrieval_policy": {"stale_penalty": 1.01}},
]


@pytest.mark.parametrize("fields", REFUSED, ids=str)
def test_what_is_refused(fields: dict[str, Any]) -> None:
    plain = {"version": "1.0", "role_id": "reviewer"} | fields
    with pytest.raises(ValidationError):
        Overlay.model_validate({key: value for key, value in plain.items() if value is not None})


# -- The request: the same fields through every interface, and a coded error for everything else


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "bad_request"),
        ({"task": ""}, "empty_task"),
        ({"task": " \n"}, "empty_task"),
        ({"task": "\ud800"}, "task_not_text"),
    ],
)
def test_a_task_that_cannot_be_searched_for(fields: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as error:
        request_from(fields)
    assert error.value.code == code
    assert error.value.hint


class TestWhere:
    def test_other_names_are_taken_inside_too(self) -> None:
        fields = {"task": "x", "filters": {"sourceId": "a", "updatedAfter": "2026-01-01"}}
        meant = {"task": "x", "where": {"source": "a", "updated_after": "2026-01-01"}}
        assert request_from(fields) == request_from(meant)

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ("source=a", "where: must be an object"),
            ({"sorce": "a"}, "where.sorce: unknown key; did you mean source?"),
            ({"source": []}, "where.source: must have 1 or more items"),
            ({"source": ["a"] * 101}, "where.source: must have 100 items or less"),
            ({"path": "x" * 201}, "where.path[0]: must have 200 characters or less"),
            ({"updated_after": "soon"}, "where.updated_after: must be an ISO 8601 time"),
            (
                {"updated_after": "2026-01-02", "updated_before": "2026-01-01"},
                "where: updated_after must be earlier than updated_before",
            ),
            ({"source": "a", "sourceId": "b"}, "sourceId: is the same field as source"),
        ],
    )
    def test_a_mistake_is_named(self, where: Any, message: str) -> None:
        with pytest.raises(UsageError) as error:
            request_from({"task": "x", "where": where})
        assert error.value.code == "bad_request"
        assert error.value.message.startswith(message)
        if message.startswith("where"):
            assert error.value.hint.startswith("keys of where: source, document_type, domain")


# -- What may be declared about a document, and the forms in which it is kept ----------------------


class TestTimes:
    @pytest.mark.parametrize(
        ("declared", "expected"),
        [
            ("2026-03-01", "2026-03-01T00:00:00Z"),
            (" 2026-03-01T10:30:00+02:00 ", "2026-03-01T08:30:00Z"),
            ("2026-03-01T10:30:00", "2026-03-01T10:30:00Z"),
            (date(2026, 3, 1), "2026-03-01T00:00:00Z"),
            (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00Z"),
            (datetime(2026, 3, 1), "2026-03-01T00:00:00Z"),  # as YAML reads it
        ],
    )
    def test_what_may_be_declared(self, declared: object, expected: str) -> None:
        metadata = DeclaredMetadata.model_validate({"updated_at": declared})
        assert metadata.updated_at == expected

    @pytest.mark.parametrize("declared", ["last week", "", "2026-13-01", 2026, 1.5, []])
    def test_and_what_not(self, declared: object) -> None:
        with pytest.raises(ValidationError, match="ISO 8601"):
            DeclaredMetadata.model_validate({"updated_at": declared})


@pytest.mark.parametrize(
    "fields",
    [
        {"trust": "authoritative"},
        {"trust_tier": "Authoritative"},
        {"sensitivity": "secret"},
        {"origin": "elsewhere"},
        {"document_id": ""},
        {"document_id": "a\x00b"},
        {"source_id": "x" * 201},
        {"tags": {"a": "b"}},
        {"applicable_roles": ["No Role"]},
        {"retrieval_hints": [" "]},
        {"supersedes": {"old": "x"}},
        {"contradicts": 3},
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DeclaredMetadata.model_validate(fields)


# -- pydantic's errors become a list of places, reasons and allowed values -------------------------

OVERLAY: dict[str, Any] = {
    "version": "1.0",
    "role_id": "reviewer",
    "vocabulary": {"synonyms": {"auth": ["authentication"]}, "boost_phrases": ["boundary"]},
    "source_policy": {
        "preferred_sources": [{"pattern": "owasp", "boost": 2}],
        "trust_tier_boosts": {"authoritative": 2.0},
    },
    "retrieval_policy": {"max_selected_chunks": 8, "fusion": "rrf"},
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=8), inner, max_size=3)
    ),
)


def mistakes(contract: type[Contract], values: object) -> list[Mistake]:
    with pytest.raises(ValidationError) as error:
        contract.model_validate(values)
    return mistakes_in(error.value, contract)


def changed(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    values = copy.deepcopy(OVERLAY)
    target: Any = values
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return values


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("label",), 1, "must be a text"),
        (
            ("vocabulary", "boost_phrases", 0),
            "\ud800",
            "must be Unicode text, without unpaired surrogates",
        ),
        (("vocabulary",), [], "must be an object"),
        (("vocabulary", "synonyms"), [], "must be an object"),
        (("vocabulary", "boost_phrases"), "x", "must be a list"),
        (("vocabulary", "boost_phrases", 0), "x" * 501, "must have 500 characters or less"),
        (("retrieval_policy", "max_selected_chunks"), 2.5, "must be a whole number"),
        (("retrieval_policy", "max_selected_chunks"), True, "must be a whole number"),
        (("retrieval_policy", "max_selected_chunks"), 0, "must be 1 or more"),
        (("retrieval_policy", "max_selected_chunks"), 1001, "must be 1000 or less"),
        (("retrieval_policy", "freshness_max_age_days"), 0, "must be more than 0"),
        (("retrieval_policy", "min_score"), "1", "must be a number"),
        (("retrieval_policy", "min_score"), float("nan"), "must be a finite number"),
        (("retrieval_policy", "require_source_diversity"), 1, "must be true or false"),
        (("retrieval_policy", "fusion"), "max", "must be one of 'weighted', 'rrf'"),
    ],
)
def test_each_reason_is_plain_english(place: tuple[Any, ...], value: Any, message: str) -> None:
    (mistake,) = mistakes(Overlay, changed(place, value))
    assert (mistake.place, mistake.kind, mistake.message) == (place, "value", message)


@given(values=JSON, key=st.sampled_from([*RetrievalRequest.model_fields]))
def test_any_value_is_valid_or_has_mistakes(values: Any, key: str) -> None:
    for fields in (values, {"task": "x", key: values}):
        try:
            RetrievalRequest.model_validate(fields)
        except ValidationError as error:
            found = mistakes_in(error, RetrievalRequest)
            assert found
            assert all(mistake.message for mistake in found)


# -- the tables have a row for each code, and no other ---------------------------------------------


@pytest.mark.parametrize(
    ("rows", "codes", "row"),
    [
        (terms.REJECTIONS, terms.RejectionCode, terms.RejectionRow),
        (terms.WARNINGS, terms.WarningCode, terms.WarningRow),
    ],
)
def test_each_code_has_a_row_with_allowed_values(rows: Any, codes: Any, row: Any) -> None:
    TypeAdapter(Mapping[codes, row]).validate_python(rows)  # type: ignore[valid-type]
    assert {*rows} == {*get_args(codes)}


def test_each_message_is_of_an_error_that_pydantic_has() -> None:
    assert {*data_file(base.__file__, "mistakes.toml")} <= {*get_args(ErrorType)}


# -- docs/schema/ is what the contracts say, and no file of it is out of date ----------------------

FOLDER = Path(__file__).parent.parent.parent / "docs" / "schema"


def test_the_files_are_up_to_date() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SCHEMAS)
    assert [
        name
        for name in SCHEMAS
        if (FOLDER / f"{name}.json").read_text(encoding="utf-8") != schema_text(name)
    ] == [], "run `python tools/write_schemas.py docs/schema`"


def test_only_the_task_is_required_of_a_request() -> None:
    assert json_schema("request")["required"] == ["task"]
