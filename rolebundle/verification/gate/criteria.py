"""The checks of a gate's criteria: each gives a result and the reason for it.

What cannot be found out is ``unknown``, and never ``met``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from rolebundle.contracts.decisions import CheckRequest
from rolebundle.contracts.gate import Criterion, Result
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import MAX_DRAFT_CHARACTERS, VerifyRequest
from rolebundle.errors import ConfigurationError, RolebundleError
from rolebundle.scan import linear
from rolebundle.text.strict_json import NotStrictError, parse_strict
from rolebundle.verification.gate.files import Comparison, NotReadable, WorkFolder, state_of
from rolebundle.verification.gate.no_result import fault_of

if TYPE_CHECKING:
    from pathlib import Path

    from rolebundle.contracts.bundle import RetrievalBundle
    from rolebundle.contracts.decisions import CheckAnswer
    from rolebundle.contracts.verification import Verification

MAX_JSON_BYTES = 8 << 20
MAX_COMMAND_OUTPUT_BYTES = 1 << 20
"""A command that writes more is ended, and its result is unknown."""
DEFAULT_COMMAND_SECONDS = 60.0
_PAUSE_SECONDS = 0.02
_POSTURES = {"undeclared": 0, "weak": 0, "mixed": 1, "strong": 2}
_SHOWN_CHARACTERS = 200
_WHITE_SPACE = re.compile(rb"\s+")


class Outcome(NamedTuple):
    """The result of a criterion, and why."""

    result: Result
    reason: str


class CorpusAnswers(NamedTuple):
    """What criteria ask the corpus, in the name of whoever checks the gate."""

    retrieve: Callable[[RetrievalRequest], RetrievalBundle]
    check: Callable[[CheckRequest], CheckAnswer]
    verify: Callable[[VerifyRequest], Verification]


@dataclass(frozen=True, slots=True)
class CriterionContext:
    """What a criterion is judged by.

    Attributes:
        work: the contract's folder.
        comparison: with the baseline; ``None`` if there is none.
        corpus: what the corpus answers.
        no_command: why commands are not run; empty if they are.
    """

    work: WorkFolder
    comparison: Comparison | None
    corpus: CorpusAnswers
    no_command: str


def judge(criterion: Criterion, context: CriterionContext) -> Outcome:
    """Judge a criterion."""
    try:
        match criterion.check:
            case "posture":
                return _posture(criterion, context.corpus)
            case "command":
                return _command(criterion, context)
            case "verify":
                return _each_file(
                    criterion, context, lambda p, d: _verify(criterion, context, p, d)
                )
            case "changed":
                return _changed(criterion, context)
            case "schema":
                validator = schema_validator(context.work, _text(criterion.schema_file))
                return _each_file(criterion, context, lambda p, d: _schema(validator, p, d))
            case "decisions":
                return _decisions(criterion, context.corpus)
            case _:
                return _each_file(criterion, context, lambda p, d: _content(criterion, p, d))
    except NotReadable as error:
        return Outcome("unknown", str(error))
    except RolebundleError as error:
        return Outcome("unknown", _one_line(f"{error.message}; {error.hint}".removesuffix("; ")))


# -- files ----------------------------------------------------------------------------------------


def _each_file(
    criterion: Criterion, context: CriterionContext, check: Callable[[str, bytes], Outcome]
) -> Outcome:
    """The worst outcome of the files that a criterion names: not met, unknown, met."""
    path = _text(criterion.file)
    names = context.work.matches(path)
    if not names:
        return Outcome("not_met", f"{path}: no file matches")
    unknown: Outcome | None = None
    for name in names:
        try:
            outcome = check(name, context.work.read(name).data)
        except NotReadable as error:
            outcome = Outcome("not_met" if error.is_known else "unknown", f"{name}: {error}")
        if outcome.result == "not_met":
            return outcome
        if outcome.result == "unknown":
            unknown = unknown or outcome
    return unknown or (outcome if len(names) == 1 else Outcome("met", f"{len(names)} files"))


def _content(criterion: Criterion, path: str, data: bytes) -> Outcome:
    if criterion.check == "exists":
        return Outcome("met", f"{path}: {_size(data)}")
    if criterion.check == "not_empty":
        fault = fault_of(data)
        is_empty = fault is not None and fault.code == "empty_output"
        size_or_fault = fault.message if fault is not None and is_empty else _size(data)
        return Outcome("not_met" if is_empty else "met", f"{path}: {size_or_fault}")
    if criterion.check == "min_bytes":
        least = criterion.bytes or 1
        # White space and zero bytes may not make up more than half of what is asked for.
        solid = len(_WHITE_SPACE.sub(b" ", data.translate(None, b"\x00")))
        is_met = len(data) >= least and 2 * solid >= least
        padding = f" ({solid:,} without white space)" if 2 * solid < len(data) else ""
        return _outcome(is_met, f"{path}: {_size(data)}{padding}, needed are {least:,}")
    if criterion.check == "matches":
        pattern = _text(criterion.pattern)
        is_met = linear.compiled(pattern).search(data) is not None
        verb = "matches" if is_met else "does not match"
        return _outcome(is_met, f"{path}: {verb} {pattern[:100]}")
    actual = sha256(data).hexdigest()
    return _outcome(actual == criterion.sha256, f"{path}: its SHA-256 is {actual[:16]}…")


def _changed(criterion: Criterion, context: CriterionContext) -> Outcome:
    path = _text(criterion.file)
    if context.comparison is None:
        return Outcome("unknown", "there is no baseline to compare with")
    names = context.work.matches(path)
    if not names:
        return Outcome("not_met", f"{path}: no file matches")
    notes = []
    for name in names:
        try:
            change = context.comparison.change(name, state_of(name, context.work.read(name)))
        except NotReadable as error:
            if not error.is_known:
                raise NotReadable(f"{name}: {error}", is_known=False) from None
            notes.append(f"{name}: {error}")
            continue
        if change.is_work:
            return Outcome("met", f"{name}: {change.note}")
        notes.append(f"{name}: {change.note}")
    more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
    return Outcome("not_met", notes[0] + more)


def schema_validator(work: WorkFolder, path: str) -> Any:
    """The validator of a JSON Schema file. It loads nothing from elsewhere.

    Raises:
        NotReadable: the file cannot be read.
        ConfigurationError: it is no JSON Schema, or it uses what takes unbounded time.
    """
    import jsonschema
    from jsonschema.validators import validator_for
    from referencing import Registry

    schema = _json(path, work.read(path).data)
    if isinstance(schema, Outcome):
        raise _bad_schema(schema.reason)
    if not isinstance(schema, dict | bool):
        raise _bad_schema(f"{path}: is no JSON Schema")
    for pattern in _patterns(path, schema):
        try:
            linear.check(pattern)
        except linear.PatternError as error:
            if str(error) != linear.MATCHES_EMPTY_TEXT:
                raise _bad_schema(f"{path}: pattern {pattern[:80]!r}: {error}") from error
    kind: Any = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise _bad_schema(f"{path}: {_one_line(error.message)}") from error

    def pattern_in_linear_time(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Any:
        if isinstance(instance, str) and not linear.compiled(pattern).search(linear.utf8(instance)):
            yield jsonschema.ValidationError(f"{instance[:80]!r} does not match {pattern[:80]!r}")

    extend: Any = jsonschema.validators.extend
    validator = extend(kind, {"pattern": pattern_in_linear_time})
    return validator(schema, registry=Registry())


def _patterns(path: str, schema: Any) -> list[str]:
    """The regular expressions in a schema."""
    waiting, patterns = [schema], []
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "patternProperties" in value:
                raise _bad_schema(f"{path}: patternProperties is not supported")
            if isinstance(value.get("pattern"), str):
                patterns.append(value["pattern"])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return patterns


def _schema(validator: Any, path: str, data: bytes) -> Outcome:
    from jsonschema.exceptions import best_match

    value = _json(path, data)
    if isinstance(value, Outcome):
        return value
    try:
        error = best_match(validator.iter_errors(value))
    except Exception as reason:  # A reference without a target, or endless recursion.
        return Outcome("unknown", f"{path}: cannot be validated ({type(reason).__name__})")
    if error is None:
        return Outcome("met", f"{path}: fits the schema")
    return Outcome("not_met", f"{path}: {error.json_path}: {_one_line(error.message)}")


def _json(path: str, data: bytes) -> Any:
    """The value of a JSON file, or the outcome if it is none."""
    if len(data) > MAX_JSON_BYTES:
        return Outcome("unknown", f"{path}: has over {MAX_JSON_BYTES:,} bytes")
    try:
        return parse_strict(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, NotStrictError) as error:
        return Outcome("not_met", f"{path}: is not JSON ({_one_line(str(error))})")


def _bad_schema(message: str) -> ConfigurationError:
    return ConfigurationError("bad_contract", message, "correct the JSON Schema")


# -- the corpus -----------------------------------------------------------------------------------


def _verify(criterion: Criterion, context: CriterionContext, path: str, data: bytes) -> Outcome:
    try:
        draft = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Outcome("not_met", f"{path}: is no text in UTF-8")
    if len(draft) > MAX_DRAFT_CHARACTERS:
        return Outcome("unknown", f"{path}: has over {MAX_DRAFT_CHARACTERS:,} characters")
    bundle = None
    if criterion.bundle is not None:
        try:
            bundle = _json(criterion.bundle, context.work.read(criterion.bundle).data)
        except NotReadable as error:
            return Outcome("not_met", f"{criterion.bundle}: {error}")
        if isinstance(bundle, Outcome):
            return bundle
    try:
        request = VerifyRequest(
            draft=draft,
            bundle=bundle,
            role=criterion.role,
            require=criterion.require,
            publish=bool(criterion.publish),
        )
    except ValidationError:
        return Outcome("not_met", f"{criterion.bundle}: is no bundle")
    answer = context.corpus.verify(request)
    reason = f"{path}: {_one_line(answer.message)}"
    first = next((finding for finding in answer.findings if finding.fails), None)
    if first is not None:
        reason += f"; {first.code}: {_one_line(first.text)[:80]}"
    return _outcome(answer.verdict == "nothing_wrong_found", reason)


def _posture(criterion: Criterion, corpus: CorpusAnswers) -> Outcome:
    assert criterion.task is not None and criterion.trust is not None
    bundle = corpus.retrieve(RetrievalRequest(task=criterion.task, role=criterion.role))
    posture = bundle.provenance.trust_posture
    is_met = _POSTURES[posture] >= _POSTURES[criterion.trust]
    return _outcome(is_met, f"the trust posture is {posture}, needed is {criterion.trust}")


def _decisions(criterion: Criterion, corpus: CorpusAnswers) -> Outcome:
    request = CheckRequest(
        intent=_text(criterion.intent), action=criterion.action, role=criterion.role
    )
    answer = corpus.check(request)
    for decision in answer.decisions:
        if decision.effect != "warn":
            text = _one_line(f"{decision.id}: {decision.text}")
            return Outcome("not_met", f"a decision stands against it: {text}")
    if answer.unchecked:
        return Outcome("unknown", f"decisions in another language: {', '.join(answer.unchecked)}")
    return Outcome("met", "no active decision stands against it")


# -- commands -------------------------------------------------------------------------------------


def _command(criterion: Criterion, context: CriterionContext) -> Outcome:
    if context.no_command:
        return Outcome("skipped", context.no_command)
    assert criterion.command is not None
    seconds = criterion.seconds or DEFAULT_COMMAND_SECONDS
    code = run_command(criterion.command, context.work.folder, seconds)
    if isinstance(code, str):
        return Outcome("unknown", f"{criterion.command[0]}: {code}")
    expected = criterion.exit_code or 0
    reason = f"{criterion.command[0]}: exit code {code}, needed is {expected}"
    return _outcome(code == expected, reason)


def run_command(command: list[str], folder: Path, seconds: float) -> int | str:
    """Run a program without a shell and without input, in a session of its own.

    Returns:
        Its exit code, or why there is none.
    """
    import os
    import subprocess
    from tempfile import TemporaryFile
    from time import monotonic

    from rolebundle.policy.approvals import end_process

    # A file, not a pipe: a child of the program that lives on would keep a pipe open.
    with TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"cannot be started ({getattr(error, 'strerror', None) or error})"
        end = monotonic() + seconds
        try:
            while True:
                try:
                    return process.wait(_PAUSE_SECONDS)
                except subprocess.TimeoutExpired:
                    pass
                if monotonic() > end:
                    return f"did not end within {seconds:g} s"
                if os.fstat(output.fileno()).st_size > MAX_COMMAND_OUTPUT_BYTES:
                    return f"wrote over {MAX_COMMAND_OUTPUT_BYTES:,} bytes"
        finally:
            end_process(process)


def _outcome(is_met: bool, reason: str) -> Outcome:
    return Outcome("met" if is_met else "not_met", reason)


def _size(data: bytes) -> str:
    return f"{len(data):,} bytes"


def _text(value: str | None) -> str:
    assert value is not None
    return value


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN_CHARACTERS]
