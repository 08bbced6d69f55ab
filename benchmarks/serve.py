"""Measure the interfaces: latency of `serve`, cold starts, readers beside a writer.

Run: python benchmarks/serve.py [--only warm|cold|mixed]

warm: a request through `rolebundle serve` against the same call in this process, in turns.
cold: a one-shot `rolebundle retrieve`, against a Python that only imports apsw, click and pydantic.
mixed: readers, each with its own server, while another process ingests without a pause.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter
from typing import IO, Any

import rolebundle
from rolebundle.engine import Engine
from rolebundle.interfaces.servers.operations import Operations
from rolebundle.policy.overlays import overlay_folders
from rolebundle.resources import data_folder, demo_overlays

_PROGRAM = [sys.executable, "-c", "from rolebundle.interfaces.cli.main import main; main()"]
_COMMAND = [sys.executable, "-m", "rolebundle"]
_DEMO = {"ROLEBUNDLE_OVERLAYS": str(demo_overlays())}
_OVERLAYS = ("--overlay-dir", str(demo_overlays()))
_IMPORTS = [sys.executable, "-c", "import apsw, click, pydantic"]
_QUESTIONS = (
    ("Review the token refresh flow", "mossline-security-reviewer"),
    ("Plan release 3.0", "mossline-product-strategist"),
    ("Write the upgrade guide", "mossline-docs-writer"),
    ("Find out why the merge queue stalls", "mossline-incident-responder"),
    ("Review the loom merge", "mossline-code-reviewer"),
)
_SECTIONS = ("warm", "cold", "mixed")


class _Pipe:
    """A sidecar and nothing between it and us."""

    def __init__(self, db: Path, err: IO[bytes] | int = subprocess.DEVNULL) -> None:
        self.process = subprocess.Popen(
            [*_PROGRAM, "serve", "--db", str(db), *_OVERLAYS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=err,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout

    def send(self, lines: Sequence[bytes]) -> None:
        self.input.write(b"".join(line + b"\n" for line in lines))
        self.input.flush()

    def ask(self, number: int, fields: dict[str, Any]) -> Any:
        self.send([_request(number, fields)])
        return json.loads(self.output.readline())

    def close(self) -> int:
        self.input.close()
        return self.process.wait(10)


def warm(db: Path, rounds: int) -> None:
    """Print the medians and their ratio."""
    with Engine(db, overlay_folders((demo_overlays(),))) as engine:
        operations, pipe = Operations(engine), _Pipe(db)
        ways: dict[str, Callable[[dict[str, Any]], Any]] = {
            "in this process": lambda fields: operations.call("retrieve", fields),
            "serve": lambda fields: pipe.ask(1, fields),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for turn, (task, role) in zip(range(rounds + 10), cycle(_QUESTIONS), strict=False):
            for name, answer in ways.items():
                started = perf_counter()
                answer({"task": task, "role": role})
                if turn >= 10:
                    times[name].append((perf_counter() - started) * 1000)
        pipe.close()
    base = median(times["in this process"])
    print(f"warm retrieve, both lanes, overlay on, {rounds} times each")
    for name, durations in times.items():
        print(f"  {name:26} {median(durations):8.2f} ms   x{median(durations) / base:.2f}")


def cold(db: Path, pairs: int) -> None:
    """Print the medians of one-shot commands and of the imports."""
    # As an installed package is.
    compile_dir(Path(rolebundle.__file__).parent, quiet=1)
    task = ["retrieve", _QUESTIONS[0][0], "--role", _QUESTIONS[0][1], "--db", str(db), *_OVERLAYS]
    commands = {
        "bare import": _IMPORTS,
        "one-shot, lexical": [*_COMMAND, *task, "--lexical-only"],
        "one-shot, both lanes": [*_COMMAND, *task],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(pairs + 1):
        for name, command in commands.items():
            started = perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            if turn:
                times[name].append((perf_counter() - started) * 1000)
    print(f"cold, {pairs} times each")
    for name, durations in times.items():
        ratios = [time / base for time, base in zip(durations, times["bare import"], strict=True)]
        print(f"  {name:26} {median(durations):8.1f} ms   x{median(ratios):.2f}")


def mixed(db: Path, tree: Path, seconds: float, readers: int) -> None:
    """Print how readers do while a writer ingests."""
    stop = Event()
    with ThreadPoolExecutor(readers + 1) as pool:
        writer = pool.submit(_write, db, tree, stop)
        reading = [pool.submit(_read, db, stop) for _ in range(readers)]
        stop.wait(seconds)
        stop.set()
        ingests, failed = writer.result()
        results = [reader.result() for reader in reading]
    times = sorted(time for times, _, _ in results for time in times)
    errors = [code for _, codes, _ in results for code in codes]
    wrong = sum(count for _, _, count in results)
    print(f"mixed: {readers} readers and 1 writer for {seconds:g} s")
    print(f"  {len(times):,} answers, {len(errors)} errors {sorted(set(errors))}")
    print(f"  {wrong} wrong bundles")
    print(f"  median {median(times):.1f} ms, p99 {times[int(0.99 * (len(times) - 1))]:.1f} ms")
    print(f"  {ingests} ingests, {failed} failed")


def _read(db: Path, stop: Event) -> tuple[list[float], list[str], int]:
    times, errors, wrong = [], [], 0
    pipe = _Pipe(db)
    for task, role in cycle(_QUESTIONS):
        if stop.is_set():
            break
        started = perf_counter()
        answer = pipe.ask(1, {"task": task, "role": role, "detail": "full", "limit": 30})
        if "error" in answer:
            errors.append(answer["error"]["data"]["code"])
        else:
            wrong += _is_wrong(answer["result"])
        times.append((perf_counter() - started) * 1000)
    pipe.close()
    return times, errors, wrong


def _is_wrong(bundle: dict[str, Any]) -> bool:
    """Whether a bundle mixes two states of the corpus, or its counts disagree."""
    passages = [(passage["chunk_id"], passage["content"]) for passage in bundle["selected"]]
    states = {match[1] for _, content in passages if (match := _STATE.search(content))}
    pool = bundle["diagnostics"]["candidate_pool_size"]
    counted = len(passages) + sum(bundle["rejected_summary"].values())
    finals = [passage["scores"]["final"] for passage in bundle["selected"]]
    return (
        len(states) > 1
        or pool != counted
        or len({chunk_id for chunk_id, _ in passages}) < len(passages)
        or finals != sorted(finals, reverse=True)
    )


_STATE = re.compile(r"written in state (\d+)")


def _write(db: Path, tree: Path, stop: Event) -> tuple[int, int]:
    written = failed = 0
    while not stop.is_set():
        for number in range(20):
            # All notes are stored in one transaction, so an answer must show one state.
            text = f"# Note {number}\n\nToken refresh flow {number}, written in state {written}.\n"
            (tree / f"note-{number}.md").write_text(text, encoding="utf-8")
        command = [*_PROGRAM, "ingest", str(tree), "--db", str(db)]
        failed += subprocess.run(command, check=False, capture_output=True).returncode != 0
        written += 1
    return written, failed


def _request(number: int, fields: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": "retrieve", "params": fields}
    return json.dumps(message).encode()


def _sections(names: Sequence[str]) -> Iterator[str]:
    return (name for name in _SECTIONS if not names or name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=_SECTIONS, default=[])
    parser.add_argument("--rounds", type=int, default=200, help="warm requests each way")
    parser.add_argument("--pairs", type=int, default=15, help="cold starts each")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long readers read")
    parser.add_argument("--readers", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db, tree = Path(folder) / "corpus.db", Path(folder) / "tree"
        tree.mkdir()
        sample = str(data_folder("sample_corpus"))
        ingest = [*_PROGRAM, "ingest", sample, "--db", str(db)]
        subprocess.run(ingest, check=True, capture_output=True)
        run: dict[str, Callable[[], None]] = {
            "warm": lambda: warm(db, arguments.rounds),
            "cold": lambda: cold(db, arguments.pairs),
            "mixed": lambda: mixed(db, tree, arguments.seconds, arguments.readers),
        }
        for name in _sections(arguments.only):
            run[name]()


if __name__ == "__main__":
    main()
