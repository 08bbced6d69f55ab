"""Read golden sets: questions about a corpus, and what their answers must have.

A set is a TOML or JSON file of :class:`~rolebundle.contracts.evaluation.GoldenSet`::

    role = "security-reviewer"
    now = 2026-11-15

    [[questions]]
    task = "Can a stolen tablet replay a token?"
    expect = { "security/threat-model-offline-sync.md" = 3, "security/**" = 1 }
    must_not_return = ["marketing/**"]
    expect_rejection = { "product/competitive-notes-2026.md" = "forbidden_source" }

A reference is an id, a path, or a glob over either.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.evaluation import GoldenQuestion, GoldenSet
from rolebundle.contracts.mistakes import Mistake, mistakes_in
from rolebundle.errors import ConfigurationError
from rolebundle.policy.overlays import load_role
from rolebundle.text.strict_json import NotStrictError, parse_strict

SUFFIXES = (".toml", ".json")
MAX_BYTES = 16 << 20
FOLDER = "golden"
"""The folder of golden sets beside the overlays."""


def load_golden(path: Path) -> GoldenSet:
    """Read a golden set; every question gets an id and the set's defaults.

    Raises:
        ConfigurationError: ``golden_unreadable``, or ``golden_malformed`` with the file, the
            question, the key and the allowed values.
    """
    values = _normalized(_parsed(path))
    try:
        golden = GoldenSet.model_validate(values)
    except ValidationError as error:
        mistakes = mistakes_in(error, GoldenSet)
        raise _malformed(path, mistakes[0], len(mistakes) - 1, values) from error
    if not golden.questions:
        raise _flawed(path, "questions: must not be empty", "write one [[questions]] at least")
    questions = [
        _with_defaults(golden, question, n) for n, question in enumerate(golden.questions, 1)
    ]
    ids = [question.id for question in questions]
    repeated = next((key for key in ids if ids.count(key) > 1), None)
    if repeated is not None:
        raise _flawed(path, f"questions: two have the id {repeated!r}", "give each its own")
    return golden.model_copy(update={"name": golden.name or path.stem, "questions": questions})


def find_golden_set(name: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the golden set that an overlay's ``eval_profile`` names; the first folder wins.

    Golden sets are in the folder ``golden`` beside the overlays.
    """
    is_plain = name == Path(name).name
    candidates = (folder / FOLDER / f"{name}{end}" for folder in folders for end in SUFFIXES)
    return next((path for path in candidates if is_plain and path.is_file()), None)


def golden_set_of_role(role_id: str, folders: tuple[Path, ...]) -> Path:
    """Return the file of the golden set that a role's overlay names.

    Raises:
        OverlayError: the overlay cannot be loaded.
        ConfigurationError: ``no_golden_set``.
    """
    name = load_role(role_id, folders).overlay.eval_profile.golden_set_id
    path = find_golden_set(name, folders) if name else None
    if path is None:
        raise ConfigurationError(
            "no_golden_set",
            f"{role_id}: eval_profile.golden_set_id: "
            + (f"there is no golden set {name!r}" if name else "the overlay names none"),
            "set it to ID and write golden/ID.toml beside the overlay, or name a PATH",
        )
    return path


def corpus_folder(path: Path, golden: GoldenSet) -> Path | None:
    """Return the folder of documents that a set names, or ``None``."""
    return (path.parent / golden.corpus).resolve() if golden.corpus else None


def _parsed(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise _unreadable(path, f"is longer than {MAX_BYTES >> 20} MiB")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise _unreadable(path, error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"is not UTF-8 at byte {error.start}") from error
    if path.suffix == ".json":
        try:
            return parse_strict(text)
        except NotStrictError as error:
            raise _flawed(path, f"is not JSON: {error}", "write plain JSON") from error
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _flawed(path, f"is not TOML: {error}", "correct it, or write JSON (.json)") from error


def _normalized(values: Any) -> Any:
    """Turn a list of questions into a set, and a list of references into references of grade 1."""
    values = _without_dates({"questions": values} if isinstance(values, list) else values)
    if isinstance(values, dict) and isinstance(values.get("questions"), list):
        for question in values["questions"]:
            expect = question.get("expect") if isinstance(question, dict) else None
            if isinstance(expect, list) and all(isinstance(item, str) for item in expect):
                question["expect"] = dict.fromkeys(expect, 1)
    return values


def _without_dates(value: Any) -> Any:
    # TOML has dates; the contracts take them as text.
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _without_dates(item) for key, item in value.items()}
    return [_without_dates(item) for item in value] if isinstance(value, list) else value


def _with_defaults(golden: GoldenSet, question: GoldenQuestion, number: int) -> GoldenQuestion:
    return question.model_copy(
        update={
            "id": question.id or str(number),
            "role": question.role or golden.role,
            "agent": question.agent or golden.agent,
            "limit": question.limit or golden.limit,
            "now": question.now or golden.now,
            "must_not_return": list(
                dict.fromkeys([*golden.must_not_return, *question.must_not_return])
            ),
        }
    )


def _malformed(path: Path, mistake: Mistake, more: int, values: Any) -> ConfigurationError:
    text = mistake.text_in(values, "questions", "question")
    hint = (
        f"allowed here: {', '.join(mistake.allowed)}"
        if mistake.allowed
        else "see docs/quality.md for the keys"
    )
    return _flawed(path, f"{text} (and {more} more)" if more else text, hint)


def _flawed(path: Path, reason: str, hint: str) -> ConfigurationError:
    return ConfigurationError("golden_malformed", f"{path}: {reason}", hint)


def _unreadable(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(
        "golden_unreadable", f"{path}: {reason}", "name a TOML or JSON file, or a BEIR folder"
    )
