"""The criteria of a gate: each is met, not met or unknown, and says why.

What cannot be found out is ``unknown``, and never ``met``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from rolebundle.contracts.gate import Criterion, Result
from rolebundle.contracts.request import RetrievalRequest
from rolebundle.contracts.verification import VerifyRequest
from rolebundle.errors import ConfigurationError, RolebundleError
from rolebundle.policy.approvals import end_process
from rolebundle.scan import linear
from rolebundle.text.strict_json import NotStrictError, parse_strict
from rolebundle.verification.gate.comparison import Comparison
from rolebundle.verification.gate.content import content_of
from rolebundle.verification.gate.files import NotReadable, WorkFolder, state_of

if TYPE_CHECKING:
    from rolebundle.contracts.bundle import RetrievalBundle
    from rolebundle.contracts.verification import Verification

MAX_JSON_BYTES = 8 << 20
DEFAULT_COMMAND_SECONDS = 60.0
_POSTURES = {"undeclared": 0, "weak": 0, "mixed": 1, "strong": 2}
_VERIFIED: dict[str, Result] = {"nothing_wrong_found": "met", "nothing_to_check": "unknown"}
_ORDER: tuple[Result, ...] = ("not_met", "unknown", "met")


class Outcome(NamedTuple):
    """The result of a criterion, and why."""

    result: Result
    reason: str


class Context(NamedTuple):
    """What criteria are judged by.

    Attributes:
        work: the contract's folder.
        comparison: with the baseline; ``None`` if there is none.
        no_command: why commands are not run; empty if they are.
        retrieve: asks the corpus, in the name of whoever checks the gate.
        verify: likewise.
    """

    work: WorkFolder
    comparison: Comparison | None
    no_command: str
    retrieve: Callable[[RetrievalRequest], RetrievalBundle]
    verify: Callable[[VerifyRequest], Verification]


def judge(criterion: Criterion, context: Context) -> Outcome:
    """Judge a criterion by the worst result of its files; ``changed`` by the best."""
    try:
        if criterion.check == "posture":
            return _posture(criterion, context)
        if criterion.check == "command":
            return _command(criterion, context)
        check = _file_check(criterion, context)
        outcomes = []
        for path in context.work.matches([criterion.file]):
            try:
                result, reason = check(path, context.work.read(path))
            except NotReadable as error:
                result, reason = "not_met" if error.is_known else "unknown", str(error)
            outcomes.append(Outcome(result, f"{path}: {reason}"))
        if not outcomes:
            return Outcome("not_met", f"{criterion.file}: no file matches")
        best_or_worst = max if criterion.check == "changed" else min
        return best_or_worst(outcomes, key=lambda outcome: _ORDER.index(outcome.result))
    except NotReadable as error:
        return Outcome("unknown", str(error))
    except RolebundleError as error:
        return Outcome("unknown", f"{error.message}; {error.hint}".removesuffix("; ")[:300])


def _file_check(criterion: Criterion, context: Context) -> Callable[[str, bytes], Outcome]:
    if criterion.check == "schema":
        validator = schema_validator(context.work, criterion.schema_file or "")
        return lambda _path, data: _schema(validator, data)
    if criterion.check == "verify":
        return lambda _path, data: _verify(criterion, context, data)
    if criterion.check in ("changed", "moved_from", "restored"):
        return lambda path, data: _compare(criterion, context, path, data)
    return lambda path, data: _content(criterion, path, data)


def _content(criterion: Criterion, path: str, data: bytes) -> Outcome:
    size, limit = len(data), criterion.bytes or 0
    match criterion.check:
        case "not_empty":
            return _outcome(bool(content_of(path, data).substance), f"{size:,} bytes")
        case "min_bytes":
            solid = content_of(path, data).size
            is_padded = size >= limit > 2 * solid
            note = f" ({solid:,} without white space and repetition)" if is_padded else ""
            return _outcome(size >= limit and not note, f"{size:,} bytes{note}, needed: {limit:,}")
        case "max_bytes":
            return _outcome(size <= limit, f"{size:,} bytes, allowed: {limit:,}")
        case "matches":
            is_met = linear.compiled(criterion.pattern or "").search(data) is not None
            verb = "matches" if is_met else "does not match"
            return _outcome(is_met, f"{verb} {criterion.pattern}"[:120])
        case "sha256":
            actual = sha256(data).hexdigest()
            return _outcome(actual == criterion.sha256, f"its SHA-256 is {actual[:16]}…")
    return Outcome("met", f"{size:,} bytes")


def _compare(criterion: Criterion, context: Context, path: str, data: bytes) -> Outcome:
    comparison = context.comparison
    if comparison is None:
        return Outcome("unknown", "there is no baseline to compare with")
    state = state_of(path, data)
    if criterion.check == "restored":
        original = comparison.recorded(state)
        return _outcome(bool(original), f"has the content of {original or 'no file'} at the start")
    if criterion.check == "changed":
        change = comparison.change(state)
        is_met = change.is_work or bool(change.copy_of and "copy" in criterion.allow)
        return _outcome(is_met or bool(criterion.exact and change.is_touched), change.note)
    before = comparison.before.get(criterion.from_ or "")
    if before is None:
        return Outcome("not_met", f"{criterion.from_} was not there at the start")
    if context.work.state(before.path) is not None:
        return Outcome("not_met", f"{before.path} is still there")
    is_met = before.substance == state.substance
    return _outcome(is_met, f"has {'' if is_met else 'not '}the content of {before.path}")


def schema_validator(work: WorkFolder, path: str) -> Any:
    """The validator of a JSON Schema file. It loads nothing from elsewhere.

    Raises:
        NotReadable: the file cannot be read.
        ConfigurationError: it is no JSON Schema.
    """
    import jsonschema
    from jsonschema.validators import validator_for
    from referencing import Registry

    def pattern(_validator: Any, regex: str, instance: Any, _schema: Any) -> Any:
        # In linear time, unlike Python's expressions.
        if isinstance(instance, str) and not linear.compiled(regex).search(linear.utf8(instance)):
            yield jsonschema.ValidationError(f"{instance[:80]!r} does not match {regex[:80]!r}")

    def refused(*_words: Any) -> Any:
        raise NotImplementedError("patternProperties")

    try:
        schema = _json(work.read(path))
        kind: Any = validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
    except (NotStrictError, jsonschema.SchemaError, TypeError) as error:
        message = f"{path}: is no JSON Schema ({str(error).splitlines()[0][:200]})"
        raise ConfigurationError("bad_contract", message, "correct the JSON Schema") from error
    extend: Any = jsonschema.validators.extend
    validator = extend(kind, {"pattern": pattern, "patternProperties": refused})
    return validator(schema, registry=Registry())


def _schema(validator: Any, data: bytes) -> Outcome:
    from jsonschema.exceptions import best_match

    try:
        error = best_match(validator.iter_errors(_json(data)))
    except NotStrictError as reason:
        return Outcome("not_met", f"is not JSON ({reason})")
    except Exception as reason:  # A reference without a target, endless recursion, an expression.
        return Outcome("unknown", f"cannot be validated ({type(reason).__name__}: {reason})"[:200])
    return _outcome(error is None, f"{error.json_path}: {error.message}"[:200] if error else "fits")


def _json(data: bytes) -> Any:
    """The value of a JSON file.

    Raises:
        NotReadable: it is too large.
        NotStrictError: it is none.
    """
    if len(data) > MAX_JSON_BYTES:
        raise NotReadable(f"has over {MAX_JSON_BYTES:,} bytes", is_known=False)
    try:
        return parse_strict(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotStrictError("not UTF-8") from error


def _verify(criterion: Criterion, context: Context, data: bytes) -> Outcome:
    try:
        request = VerifyRequest(
            draft=data.decode("utf-8-sig"),
            bundle=_json(context.work.read(criterion.bundle)) if criterion.bundle else None,
            role=criterion.role,
            require=criterion.require,
            publish=bool(criterion.publish),
        )
    except UnicodeDecodeError:
        return Outcome("not_met", "is no text in UTF-8")
    except (ValidationError, NotStrictError, NotReadable) as error:
        reason = "is too long, or is no bundle" if isinstance(error, ValidationError) else error
        return Outcome("not_met", f"{criterion.bundle or 'the draft'}: {reason}")
    answer = context.verify(request)
    return Outcome(_VERIFIED.get(answer.verdict, "not_met"), answer.message[:200])


def _posture(criterion: Criterion, context: Context) -> Outcome:
    request = RetrievalRequest(task=criterion.task or "", role=criterion.role)
    actual, needed = context.retrieve(request).provenance.trust_posture, criterion.trust or "strong"
    is_met = _POSTURES[actual] >= _POSTURES[needed]
    return _outcome(is_met, f"the trust posture is {actual}, needed is {needed}")


def _command(criterion: Criterion, context: Context) -> Outcome:
    command, expected = criterion.command or [], criterion.exit_code or 0
    if context.no_command:
        return Outcome("unknown", context.no_command)
    code = run_command(command, context.work.folder, criterion.seconds or DEFAULT_COMMAND_SECONDS)
    if isinstance(code, str):
        return Outcome("unknown", f"{command[0]}: {code}")
    return _outcome(code == expected, f"{command[0]}: exit code {code}, needed is {expected}")


def run_command(command: list[str], folder: Path, seconds: float) -> int | str:
    """Run a program without a shell and without input, in a session of its own.

    Returns:
        Its exit code, or why there is none.
    """
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"cannot be started ({getattr(error, 'strerror', None) or error})"
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds:g} s"
    finally:
        end_process(process)


def _outcome(is_met: bool, reason: str) -> Outcome:
    return Outcome("met" if is_met else "not_met", reason)
