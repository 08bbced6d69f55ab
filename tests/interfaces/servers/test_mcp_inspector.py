"""Another client than the SDK of this project: the command line of the MCP inspector, from npm."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.mcp import OVERLAYS, TASK, http_server, needs_mcp

pytestmark = [pytest.mark.slow, needs_mcp]

INSPECTOR = "@modelcontextprotocol/inspector@2"
NPM_CACHE = Path.home() / ".npm"
"""Of the person who runs the tests. Each test has an empty home of its own."""
SEARCH = {"task": TASK, "lexical_only": True}
CALLS: dict[str, dict[str, Any]] = {
    "retrieve": SEARCH | {"limit": 2},
    "get": {"id": "product/brief-release-3.0.md:1-12"},
    "ls": {"prefix": "product", "limit": 2},
    "grep": {"pattern": "token", "prefix": "product"},
    "why": SEARCH | {"id": "product/brief-release-3.0.md"},
    "compare": SEARCH | {"roles": ["mossline-docs-writer", "mossline-code-reviewer"]},
    "verify": {"draft": "Release 3.0 is planned."},
    "check": {"intent": "Post the release notes"},
    "list_roles": {},
    "status": {},
}


@pytest.fixture(scope="module")
def inspector() -> list[str]:
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("npx is not installed")
    command = [npx, "--yes", "--cache", str(NPM_CACHE), INSPECTOR, "--cli"]
    result = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, timeout=300, check=False
    )
    if result.returncode:
        pytest.skip(f"npx cannot run {INSPECTOR}: {result.stderr.strip()[-300:]}")
    return command


def call_inspector(inspector: list[str], server: list[str], *options: str) -> Any:
    result = subprocess.run(
        [*inspector, *server, *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory", "NPM_CONFIG_LOGLEVEL": "error"},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


def arguments(fields: dict[str, Any]) -> list[str]:
    pairs = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in fields.items()
    ]
    return ["--tool-arg", *pairs] if pairs else []


def check_server(inspector: list[str], server: list[str]) -> None:
    tools = call_inspector(inspector, server, "--method", "tools/list")["tools"]
    assert {tool["name"] for tool in tools} == CALLS.keys()
    for name, fields in CALLS.items():
        options = ["--method", "tools/call", "--tool-name", name, *arguments(fields)]
        answer = call_inspector(inspector, server, *options)
        assert not answer.get("isError"), answer
        assert answer["content"][0]["text"] and "structuredContent" not in answer


def test_it_calls_every_tool_over_standard_input_and_output(
    inspector: list[str], sample_without_vectors: Path, tmp_path: Path
) -> None:
    # In a file, because the inspector takes options of the command for its own.
    command = [sys.executable, "-m", "rolebundle", "mcp", "--db", str(sample_without_vectors)]
    servers = {
        "here": {"command": command[0], "args": [*command[1:], "--overlay-dir", str(OVERLAYS)]}
    }
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    check_server(inspector, ["--config", str(config), "--server", "here"])


def test_it_calls_every_tool_over_http_and_is_refused_without_the_token(
    inspector: list[str], sample_without_vectors: Path, tmp_path: Path
) -> None:
    with http_server(sample_without_vectors, token_file=tmp_path / "token") as server:
        at = [server.url, "--transport", "http"]
        bearer = f"Authorization: {server.headers['Authorization']}"
        check_server(inspector, [*at, "--header", bearer])
        result = subprocess.run(
            [*inspector, *at, "--method", "tools/list"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode != 0 and "retrieve" not in result.stdout
