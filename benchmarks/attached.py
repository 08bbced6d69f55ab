"""Measure the memory of three hosts, without and with the server of `rolebundle up`.

Run: python benchmarks/attached.py [--hosts 3] [--model static]

Each host asks a few questions, so that the model is loaded and the corpus is open. Resident memory
(RSS) counts pages that processes share once for each; proportional memory (PSS) divides them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rolebundle.resources import data_folder

_PROGRAM = [sys.executable, "-m", "rolebundle"]
_TASKS = ("Review the token refresh flow", "Plan release 3.0", "Why does the merge queue stall?")
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}


class Host:
    """A process of `rolebundle serve` or `rolebundle mcp`, and what it is asked."""

    def __init__(self, command: str, db: Path) -> None:
        self.command = command
        self.process = subprocess.Popen(
            [*_PROGRAM, command, "--db", str(db)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if command == "mcp":
            self._ask("initialize", _HELLO)
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def retrieve(self, task: str) -> None:
        """Ask one question."""
        fields = {"task": task}
        if self.command == "mcp":
            self._ask("tools/call", {"name": "retrieve", "arguments": fields})
        else:
            self._ask("retrieve", fields)

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        assert "result" in answer and not answer["result"].get("isError"), answer

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """End its input, and wait."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def memory(process: int) -> tuple[int, int]:
    """RSS and PSS of a process in KiB."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    values = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith("kB")}
    return values["Rss"], values["Pss"]


def total(processes: list[int]) -> tuple[float, float]:
    """RSS and PSS of several processes in MB."""
    pairs = [memory(process) for process in processes]
    return sum(rss for rss, _ in pairs) / 1000, sum(pss for _, pss in pairs) / 1000


def measure(command: str, db: Path, count: int, server: int = 0) -> Any:
    """RSS and PSS of so many hosts that have asked, and of the server and what it has forked."""
    with ExitStack() as stack:
        hosts = []
        for _ in range(count):
            host = Host(command, db)
            stack.callback(host.close)
            hosts.append(host)
            for task in _TASKS:
                host.retrieve(task)
        processes = [host.process.pid for host in hosts]
        if server:
            forked = Path(f"/proc/{server}/task/{server}/children").read_text().split()
            processes += [server, *map(int, forked)]
        return total(processes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--model", default="static", help="PROVIDER[:MODEL] of the index")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "corpus.db"
        ingest = [*_PROGRAM, "ingest", str(data_folder("sample_corpus")), "--db", str(db)]
        subprocess.run(ingest, check=True, capture_output=True)
        if arguments.model != "static":
            embed = [*_PROGRAM, "corpus", "embed", "--model", arguments.model, "--db", str(db)]
            subprocess.run(embed, check=True)
        print(f"{arguments.hosts} hosts, model {arguments.model}; MB")
        for command in ("serve", "mcp"):
            os.environ["ROLEBUNDLE_SOCKET"] = "none"
            alone = measure(command, db, arguments.hosts)
            os.environ["ROLEBUNDLE_SOCKET"] = f"{folder}/s"
            subprocess.run([*_PROGRAM, "up"], check=True, capture_output=True)
            server = int(Path(f"{folder}/s.lock").read_text())
            attached = measure(command, db, arguments.hosts, server)
            subprocess.run([*_PROGRAM, "down"], check=True, capture_output=True)
            for name, alone_mb, many in zip(("RSS", "PSS"), attached, alone, strict=True):
                ratio = f"x{alone_mb / many:.2f}"
                print(f"  {command:6} {name} {many:7.0f} alone {alone_mb:7.0f} with up {ratio}")


if __name__ == "__main__":
    main()
