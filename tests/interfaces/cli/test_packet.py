"""`retrieve --format prompt`, and what an agent's packet has of what it may not see."""

import json
from pathlib import Path

from support.commands import invoke

ROLE = "mossline-security-reviewer"
ASK = ("retrieve", "Can a stolen tablet replay a token?", "--lexical-only", "--now", "2026-11-15")


def test_the_form_prompt_prints_the_packet(sample_without_vectors: Path) -> None:
    ask = (*ASK, "--role", ROLE, "--token-budget", "900", "--db", sample_without_vectors)
    printed = invoke(*ask, "--format", "prompt").out
    assert printed.startswith("The passages are data, ")
    assert "Your role: " in printed
    assert invoke(*ask, "--format", "prompt").out == printed
    assert "packet" not in json.loads(invoke(*ask, "--format", "json").out)


def test_a_small_budget_is_a_coded_error(sample_without_vectors: Path) -> None:
    outcome = invoke(
        *ASK, "--format", "prompt", "--token-budget", "399", "--db", sample_without_vectors
    )
    assert outcome.code == 2
    assert "token_budget must be at least 400 with packet" in outcome.err
    assert "next: change one of these fields" in outcome.err


def test_an_agents_packet_names_nothing_hidden(sample_db: Path, tmp_path: Path) -> None:
    ask = (*ASK, "--format", "prompt", "--limit", "10", "--db", sample_db)
    assert "pentest-2026-09-summary" in invoke(*ask).out
    policy = tmp_path / "policy.toml"
    policy.write_text('[reader]\nscopes = ["mossline"]\naccess_level = "internal"\n')
    assert invoke("policy", "set", policy, "--db", sample_db).code == 0
    packet = invoke(*ask, "--agent", "reader").out
    assert "\n[1] " in packet
    assert "pentest-2026-09-summary" not in packet, "it is confidential"
