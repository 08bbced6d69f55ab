"""Passwords as people write them in notes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolebundle.scan.confidential import find_secrets
from rolebundle.scan.secrets import masked
from support.amounts import few_examples

NOTES = {
    "Router\nPW: Otter-Lampe77\nrestart it in spring": "Otter-Lampe77",
    "The root password is quiet_kettle8.": "quiet_kettle8",
    "printer page: admin / kettle22b, then Network": "kettle22b",
    "Das WLAN-Passwort lautet Teekanne!31": "Teekanne!31",
    "mot de passe du site : Bouilloire_4x": "Bouilloire_4x",
    "la contraseña nueva es Tetera*2025": "Tetera*2025",
    "lösenordet är Tekanna2025!": "Tekanna2025!",
    "Пароль: Chainik2025!": "Chainik2025!",
    "パスワードは Yakan2025! です": "Yakan2025!",
    "the password was reset to Qu1et-Kettle by Tom": "Qu1et-Kettle",
    "alarm: PIN 8812, thirty seconds": "8812",
    "door code: 4471#": "4471#",
    "| user | password |\n|---|---|\n| ana | Kettle!44 |\n| ben | Lampe-9xy |": "Lampe-9xy",
    "host,user,pw\nshop,ana,Kettle!44": "Kettle!44",
    "credentials: bob / Kettle!44": "Kettle!44",
}
HARMLESS = [
    "password: optional",
    "Passwort: liegt im Tresor",
    "PIN: 4-stellig",
    "PIN header 2x20",
    "read / write / execute",
    "pass 1 of 3",
    "password_hash VARCHAR(255)",
    "pwd: /srv/projects/kettle2",
    "password: ${DB_PASSWORD}",
    "passed to the __init_2 function",
    "see ops-runbooks/operations/token-rollover.md#483957703c",
    "admin / 2026-03-01 / created",
    "buf.length / Uint16Array.BYTES",
    "| option | meaning |\n|---|---|\n| password | asked at the prompt |",
    "mot de passe : 12 caractères",
    "the password policy is in docs/policy-v2.md",
]


@pytest.mark.parametrize(("note", "password"), NOTES.items())
def test_a_password_in_a_note_is_masked(note: str, password: str) -> None:
    assert password not in masked(note, find_secrets(note))


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_password_stays(text: str) -> None:
    assert find_secrets(text) == ()


@given(st.lists(st.sampled_from([*NOTES, *HARMLESS, "pw", "|", ":", " / ", "admin", "\n", "x9!"])))
@few_examples
def test_a_mask_moves_no_line(parts: list[str]) -> None:
    text = " ".join(parts)
    clean = masked(text, find_secrets(text))
    assert clean.count("\n") == text.count("\n")
