"""Measure the score of `check_coverage` on claims with human labels, and fit its weights.

Run: python benchmarks/verify.py [FOLDER]

FOLDER has `attributionbench-dev.jsonl` and `wice-claim-dev.jsonl`; by default it is
`eval/verify` in the folder that ROLEBUNDLE_SHARED names. The weights are fitted on four fifths of
AttributionBench and measured on the rest, five times; claims on one question are never in both
parts. The weights in `coverage.py` are those of a fit on all of it, which this prints. WiCE is
measured with them as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from documentation import print_table
from numpy.typing import NDArray

from rolebundle.contracts.document import DocumentMetadata, Passage
from rolebundle.verification.draft.coverage import (
    INTERCEPT,
    UNCOVERED,
    WEIGHTS,
    Features,
    best_match,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_FOLDS = 5
_EVEN = 0.5
"""The score at which a claim is as often supported as not, in a balanced collection."""
# Citations, and numbers of list items, are no part of a claim.
_CITATION = re.compile(r"\[\d+\]|^\s*\d+[.)]\s")


@dataclass(frozen=True, slots=True)
class Claims:
    """A collection: a row of features for each claim, its label, question and source."""

    features: Floats
    supported: Bools
    questions: tuple[str, ...]
    sources: NDArray[np.str_]


def _passage(number: int, text: str) -> Passage:
    document = DocumentMetadata(f"d{number}", "claims", "", "")
    chunk = str(number), "evidence.md", (), text, "paragraph", "", 1, 1, 0, (), (), ()
    return Passage(number, *chunk, document)  # type: ignore[arg-type]


def _features(claim: str, evidence: Iterable[str]) -> Features:
    passages = [_passage(number, text) for number, text in enumerate(evidence)]
    match = best_match(_CITATION.sub(" ", claim), "en", passages)
    return match.features if match else Features(0, 0, 0)


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def attribution_bench(folder: Path) -> Claims:
    """AttributionBench: claims with the references that they cite."""
    rows = _rows(folder / "attributionbench-dev.jsonl")
    return Claims(
        np.array([_features(str(row["claim"]), row["references"]) for row in rows]),  # type: ignore[arg-type]
        np.array([row["attribution_label"] == "attributable" for row in rows]),
        tuple(str(row["question"]) for row in rows),
        np.array([str(row["src_dataset"]) for row in rows]),
    )


def wice(folder: Path) -> Claims:
    """WiCE: claims of Wikipedia with the sentences of a cited page; partial support is none."""
    rows = _rows(folder / "wice-claim-dev.jsonl")
    evidence = ["\n\n".join(row["evidence"]) for row in rows]  # type: ignore[arg-type]
    return Claims(
        np.array(
            [_features(str(row["claim"]), [text]) for row, text in zip(rows, evidence, strict=True)]
        ),
        np.array([row["label"] == "supported" for row in rows]),
        tuple(str(row["claim"]) for row in rows),
        np.array(["WiCE"] * len(rows)),
    )


def fit(features: Floats, labels: Bools, penalty: float = 1.0) -> Floats:
    """The intercept and weights of a logistic regression with an L2 penalty; Newton's method."""
    mean, scale = features.mean(axis=0), features.std(axis=0)
    inputs = np.column_stack([np.ones(len(features)), (features - mean) / scale])
    weights = np.zeros(inputs.shape[1])
    penalties = np.full(inputs.shape[1], penalty)
    penalties[0] = 1e-9
    for _ in range(50):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (likely - labels) + penalties * weights
        curve = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + np.diag(penalties)
        weights -= np.linalg.solve(curve, slope)
    own = weights[1:] / scale
    return np.concatenate([[weights[0] - own @ mean], own])


def scores(features: Floats, weights: Floats) -> Floats:
    """The scores of claims."""
    result: Floats = 1 / (1 + np.exp(-weights[0] - features @ weights[1:]))
    return result


def cross_validated(claims: Claims) -> Floats:
    """The score of each claim by weights that were fitted without its question."""
    digests = [hashlib.sha256(question.encode()).digest() for question in claims.questions]
    folds = np.array([digest[0] % _FOLDS for digest in digests])
    result = np.zeros(len(folds))
    for fold in range(_FOLDS):
        weights = fit(claims.features[folds != fold], claims.supported[folds != fold])
        result[folds == fold] = scores(claims.features[folds == fold], weights)
    return result


def macro_f1(predicted: Bools, labels: Bools) -> float:
    """The mean of the F1 of both labels."""
    of_labels = [
        2 * np.sum((predicted == label) & (labels == label))
        / (np.sum(predicted == label) + np.sum(labels == label))
        for label in (True, False)
    ]  # fmt: skip
    return float(np.mean(of_labels))


def balanced_accuracy(predicted: Bools, labels: Bools) -> float:
    """The mean of the shares of both labels that were predicted."""
    return float((np.mean(predicted[labels]) + np.mean(~predicted[~labels])) / 2)


def uncovered(found: Floats, labels: Bools, threshold: float = UNCOVERED) -> tuple[float, float]:
    """Precision and recall of scores below a threshold among claims that are not supported."""
    below = found < threshold
    return float(np.mean(~labels[below])), float(np.mean(below[~labels]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    shared = Path(os.environ.get("ROLEBUNDLE_SHARED", "../shared"))
    parser.add_argument("folder", nargs="?", type=Path, default=shared / "eval" / "verify")
    folder = parser.parse_args().folder
    if not folder.is_dir():
        sys.exit(f"{folder} does not exist; name the folder with the collections.")
    start = process_time()
    bench, wice_claims = attribution_bench(folder), wice(folder)
    seconds = process_time() - start
    found = cross_validated(bench)
    constants = np.array([INTERCEPT, *WEIGHTS])
    of_other = scores(wice_claims.features, constants)
    by_source = {
        name: macro_f1(
            found[bench.sources == name] >= _EVEN, bench.supported[bench.sources == name]
        )
        for name in sorted(set(bench.sources))
    }
    precision, recall = uncovered(found, bench.supported)
    other_precision, other_recall = uncovered(of_other, wice_claims.supported)
    rows = [
        (
            "AttributionBench: macro-F1, mean of its sources",
            float(np.mean([*by_source.values()])),
            "0.70",
        ),
        ("AttributionBench: macro-F1, all claims", macro_f1(found >= _EVEN, bench.supported), ""),
        *((f"AttributionBench: macro-F1, {name}", value, "") for name, value in by_source.items()),
        ("AttributionBench: precision of uncovered", precision, "0.80"),
        ("AttributionBench: recall of uncovered", recall, ""),
        (
            "WiCE: balanced accuracy",
            balanced_accuracy(of_other >= _EVEN, wice_claims.supported),
            "0.64",
        ),
        ("WiCE: precision of uncovered", other_precision, ""),
        ("WiCE: recall of uncovered", other_recall, ""),
    ]
    print_table([(name, f"{value:.3f}", goal) for name, value, goal in rows])
    print(f"\n{len(found) + len(of_other)} claims in {seconds:.1f} s of CPU")
    fitted = fit(bench.features, bench.supported)
    print(
        "constants:",
        Features(*(round(float(constant), 2) for constant in fitted[1:])),
        f"{fitted[0]:.2f}",
    )
    for threshold in (UNCOVERED - 0.04, UNCOVERED - 0.02, UNCOVERED + 0.02, UNCOVERED + 0.04):
        precision, recall = uncovered(found, bench.supported, threshold)
        print(f"uncovered below {threshold:.2f}: precision {precision:.3f}, recall {recall:.3f}")


if __name__ == "__main__":
    main()
