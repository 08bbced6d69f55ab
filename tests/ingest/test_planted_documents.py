"""A planted document gains nothing by what it declares, in whatever form."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rolebundle.contracts.overlay import Overlay
from rolebundle.contracts.terms import ACTIONS
from rolebundle.storage.opening import open_reader
from rolebundle.storage.passages import passages_by_rowid
from support.amounts import rounds
from support.corpora import ask
from support.sound import assert_sound
from support.source_tree import BODY, OWNER, Tree, front

REAL = "security-review/security/threat-model.md"
ROLE = Overlay.model_validate(
    {
        "version": "1.0",
        "role_id": "mossline-security-reviewer",
        "label": "Reviewer",
        "mission": "Review.",
        "source_policy": {
            "preferred_sources": [{"pattern": "security", "reason": "ours"}],
            "trust_tier_boosts": {"authoritative": 2.0, "preferred": 1.5, "general": 1.2},
            "document_type_boosts": {"threat-model": 2.0},
        },
    }
)


FORMS = ("yaml", "toml", "jsonl", "separated", "json", "manifest", "checkout", "foreign")
LIMITS = ("tier", "origin", "general", "defaults", "flag", "untrusted", "max_trust")
HOSTILE: dict[str, list[Any]] = {
    "trust_tier": ["authoritative", "preferred"],
    "origin": ["internal"],
    "sensitivity": ["public", "group"],
    "scope": ["security-team", "hr"],
    "source_id": ["security-review", "Security-Review", "security-notes"],
    "document_id": [REAL, "security-review/security", "threat-model"],
    "supersedes": [[REAL], ["security/threat-model.md"], [REAL, "security/threat-model.md"]],
    "contradicts": [[REAL]],
    "applicable_roles": [["mossline-security-reviewer"]],
    "domain": ["security"],
    "document_type": ["threat-model"],
}


def planted_tree(tree: Tree, limit: str, seed: int, count: int, *, with_claims: bool) -> None:
    """The real document, and planted ones in ``community/`` with or without their claims.

    The planted ones are the same in number, place and text.
    """
    random = Random(seed)
    rule = {
        "tier": "[[rule]]\nglob = 'community/**'\ntrust_tier = 'untrusted'\n",
        "origin": "[[rule]]\nglob = 'community/**'\norigin = 'untrusted'\n",
        "general": "[[rule]]\nglob = 'community/**'\ntrust_tier = 'general'\n",
        "defaults": "[defaults]\ntrust_tier = 'untrusted'\norigin = 'external'\n",
    }.get(limit, "")
    separated = "[[rule]]\nglob = '**/*.sep'\nreader = 'separated'\nseparator = '=== '\n"
    # Flags concern whole runs, so the real document is then in a root of its own.
    is_apart = limit in ("flag", "untrusted", "max_trust")
    real = tree.root / "ours" if is_apart else tree.root
    community = tree.root / "theirs" if is_apart else tree.root
    for path, text in (
        (real / "rolebundle.toml", OWNER + ("" if is_apart else rule + separated)),
        (real / "security" / "threat-model.md", f"# Threat model\n\n{BODY}\n"),
        *([(community / "rolebundle.toml", separated)] if is_apart else []),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The real document is in [defaults] too, which later rules override.
        path.write_text(text if not rule.startswith("[def") else rule + OWNER + separated)
        if path.suffix == ".md":
            path.write_text(f"# Threat model\n\n{BODY}\n")
    for number in range(count):
        form = FORMS[number % len(FORMS)]
        if (limit, form) == ("untrusted", "separated"):
            form = "yaml"  # Nobody separates it: the manifest beside it is not read.
        keys = random.sample(sorted(HOSTILE), random.randint(1, len(HOSTILE)))
        claims = {key: random.choice(HOSTILE[key]) for key in keys}
        if form != "json":
            claims.pop("document_id" if form in ("manifest", "checkout", "foreign") else "", None)
        plant_document(
            community / "community" / str(number), form, claims if with_claims else {}, number
        )
    if is_apart:
        tree.ingest(real)
        options: dict[str, Any] = {
            "flag": {"flags": {"trust_tier": "untrusted"}},
            "untrusted": {"flags": {"trust_tier": "untrusted", "origin": "untrusted"}},
            "max_trust": {"max_trust": "general"},
        }[limit]
        tree.ingest(community, **options)
    else:
        tree.ingest()


def plant_document(folder: Path, form: str, claims: dict[str, Any], number: int) -> None:
    folder.mkdir(parents=True)
    text = f"{BODY} Or does it? Number {number} says no."
    toml = "".join(f"{key} = {json.dumps(value)}\n" for key, value in claims.items())
    if form == "yaml":
        (folder / "p.md").write_text(front(**claims) + text + "\n")
    elif form == "toml":
        (folder / "p.md").write_text((f"+++\n{toml}+++\n" if claims else "") + text + "\n")
    elif form == "jsonl":
        # A record's _id would otherwise take precedence over its metadata.
        record = {"title": "p", "text": text, "metadata": claims}
        (folder / "p.jsonl").write_text(json.dumps(record) + "\n")
    elif form == "separated":
        body = f"=== one\n{text}\n=== two\n{front(**claims)}{text}\n"
        (folder / "p.sep").write_text(body)
    elif form == "json":
        chunk = {
            "chunk_id": f"{REAL}#{number:010}" if claims else f"c{number}",
            "content": text,
            "applicable_roles": ["mossline-security-reviewer"] if claims else [],
        }
        document = {"document_id": f"d{number}", "title": "p", **claims, "chunks": [chunk]}
        (folder / "p.json").write_text(json.dumps({"documents": [document]}))
    else:
        (folder / "p.md").write_text(text + "\n")
        manifest = folder / "rolebundle.toml"
        manifest.write_text(f"trust_documents = {str(bool(claims)).lower()}\n[defaults]\n{toml}")
        if form == "checkout":
            (folder / ".git").mkdir()
        elif form == "foreign":
            if os.geteuid() == 0:
                os.chown(manifest, 12345, 12345)
            else:
                # Without the right to give files away: a link is not ours for certain, either.
                manifest.rename(folder / ".elsewhere")
                manifest.symlink_to(".elsewhere")


@pytest.mark.sample(2)
@rounds(2, 28)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_planted_document_gains_nothing(tmp_path: Path, limit: str, rounds: int) -> None:
    """With its claims it is what it is without them: in rank, action, scope, id and supersession."""
    plain, hostile = Tree(tmp_path / "plain"), Tree(tmp_path / "hostile")
    count = rounds * 4
    for tree, with_claims in ((plain, False), (hostile, True)):
        planted_tree(tree, limit, 7, count, with_claims=with_claims)
    assert governed(hostile) == governed(plain)
    assert answers(hostile) == answers(plain)
    assert REAL in hostile.documents()
    assert_sound(hostile.db)
    if limit == "untrusted":
        assert all(
            "suggest" not in passage[-1]
            for passage in answers(hostile)["suggest"]
            if "community" in passage[0]
        )


def governed(tree: Tree) -> dict[str, Any]:
    """By path of the document: all of its metadata that decides about its use."""
    with open_reader(tree.db) as corpus:
        rowids = [row for (row,) in corpus.rows("SELECT id FROM chunk")]
        found = passages_by_rowid(corpus, rowids).values()
        return {
            f"{passage.document.uri} {passage.content[:70]}": (
                # In JSON the id is the name of the record.
                passage.document.document_id.split("#")[0],
                passage.document.source_id,
                passage.document.trust_tier,
                passage.document.origin,
                passage.document.sensitivity,
                passage.document.scope,
                passage.document.domain,
                passage.document.document_type,
                passage.document.applicable_roles,
                passage.document.contradicts,
                passage.applicable_roles,
                passage.chunk_id.split("#")[0],
                passage.superseded_by,
            )
            for passage in found
            if not passage.path.endswith(".json") or "community" not in passage.path
        } | {
            passage.path: (
                passage.document.source_id,
                passage.document.trust_tier,
                passage.document.domain,
                passage.applicable_roles,
                passage.chunk_id.startswith(f"{passage.document.document_id}#"),
            )
            for passage in found
            if passage.path.endswith(".json")
        }


def answers(tree: Tree) -> dict[str, list[tuple[str, Any, Any]]]:
    with open_reader(tree.db) as corpus:
        bundles = {
            action: ask(
                corpus,
                ROLE,
                task="Does the relay check each token of a note?",
                action=action,
                limit=50,
                lexical_only=True,
            )
            for action in ACTIONS
        }
    return {
        action: [
            # Front matter moves the lines of a passage.
            (chunk.citation.locator.split(":")[0], chunk.scores.final, chunk.allowed_actions)
            for chunk in bundle.selected
        ]
        for action, bundle in bundles.items()
    }
