"""Texts that are no result: nothing, an error, a refusal, or a placeholder.

A text is judged as a whole. A report that quotes an error, or says what could not be found, is a
result. English, and the messages of common tools. `docs/gate.md` lists what is recognized.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from rolebundle.contracts.gate import SuspicionCode
from rolebundle.text.strict_json import NotStrictError, parse_strict

_WINDOW_BYTES = 200_000
_END_BYTES = 20_000
_LINE_CHARACTERS = 400
_REFUSAL_CHARACTERS = 1_000
_ERROR_CHARACTERS = 500
_BRIEF_CHARACTERS = 300
"""A longer text that only begins with a refusal, an error or a failure goes on with a result."""
_ERROR_SHARE = 0.6
"""A text of which so many lines are errors or frames of a stack is an error of any length."""

EMPTY_BY_CONVENTION = frozenset(
    {"__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll", "conftest.py"}
)
"""Names of files that are meant to be empty."""

_HTTP = (
    r"(?:page |file |resource )?not found|forbidden|unauthori[sz]ed|access denied|bad request"
    r"|internal server error|server error|bad gateway|service (?:temporarily )?unavailable"
    r"|gateway time-?out|request time-?out|too many requests|rate limit(?:ed)?(?: exceeded)?"
    r"|just a moment|attention required|request rejected|(?:oops\W+)?something went wrong"
)
_END = r"(?=\s*(?:$|[|·•»\-–—:.!…,;(]))"
_STATUS = (
    rf"(?:(?:http(?:/[\d.]+)?|error|status|code)[ :]*)*[45]\d\d(?:[ :\-–—]+(?:{_HTTP}))?{_END}"
)
_ACTOR = (
    "api|build|command|compilation|connection|execution|http|internal|job|model|network|operation"
    "|parse|process|read|request|run|runtime|server|step|syntax|system|task|test|timeout|tool"
    "|unexpected|unknown|validation|write"
)
_ENDED_BADLY = (
    r"(?:failed|failure|aborted|interrupted|cancell?ed|terminated|timed out|refused|reset)"
)
_DO = (
    "access|assist|build|complete|comply|connect|continue|create|determine|do|download|execute|fetch"
    "|find|finish|fulfill|generate|get|help|import|install|load|locate|make|open|parse|perform"
    "|proceed|process|produce|provide|read|resolve|retrieve|run|save|start|support|write"
)
_CANNOT = (
    r"(?:can ?not|can['’]t|could not|couldn['’]t|won['’]t|will not) (?:currently |yet |directly )?"
    rf"(?:be able to )?(?:{_DO})\b"
)
_ENDED = (
    r"(?:completed?|finished|done|generated|created|written|fulfilled|processed|found|opened|read"
    r"|produced|possible|available)\b"
)
_SORRY = (
    r"(?:sorry|apologies|unfortunately|regrettably|i apologi[sz]e)\b[^.]{0,80}?[,;:–— ]+(?:but )?"
)
_BLANK = "insert|your|todo|tbd|placeholder|fill|here"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_PAGE_TITLE = _any_of(
    _STATUS, rf"(?:{_HTTP}|error){_END}", "access to .{1,40} denied", "checking your browser"
)
_ERROR_LINE = _any_of(
    r"traceback \(most recent call last\)",
    rf"(?:(?:(?:{_ACTOR}) )?[\w.$]*(?:error|exception)|fatal|panic|critical|failure|failed|err)"
    r"\s*(?:\[[^\]]*\]|\(\w+\))?\s*:|(?:fehler|erreur|errore|ошибка|错误|エラー)\s*[:：]",
    r"(?:error|fatal|critical)\]|[\w./-]+: (?:fatal )?error\b|make: \*\*\*|[\w./-]+: connect to ",
    r"error (?:code|\d+|occurred|while|in\b|processing|reading|writing|opening|generating|loading)",
    r"an? (?:\w+ )?error (?:has )?occurred",
    r"exception in thread|unhandled ?(?:exception|rejection|promise)|uncaught \w+",
    r"thread '[^']*' panicked|segmentation fault|bus error|core dumped|npm err!|curl: \(\d+\)",
    rf"(?:(?:{_ACTOR}) )?(?:error|killed|overloaded|timeout|{_ENDED_BADLY})\W*$",
    r"[^\s:]+: (?:(?:line )?\d+: )?(?:[^:]+: )?(?:(?:command )?not found|no such file"
    r"|permission denied)",
    rf"(?:the )?(?:{_ACTOR}) (?:was |has )?(?:{_ENDED_BADLY}|exited with (?:code|status) [1-9])",
    r"exit (?:code|status) [1-9]",
    r"timed? ?out\b|permission denied|no such file|out of memory|no space left|command not found",
    r"invalid (?:api key|request)\b|(?:quota|context length|token limit) exceeded"
    r"|(?:prompt|input|context) is too long|max(?:imum)? (?:turns|tokens|retries) reached"
    r"|credit balance is too low",
    rf"(?:{_HTTP}){_END}",
    _STATUS,
)
_TIMESTAMP = re.compile(r"\W*\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\W+")
_LOGGED_ERROR = re.compile(r"(?:error|fatal|critical|severe)\b", re.IGNORECASE)
_FRAME = re.compile(r'\s+(?:at\s|File "|\.\.\. \d+ more|\^+|~+\^)|Caused by: |goroutine \d')
_TRACE_LINE = re.compile(r"^[ \t]|^$|^(?:During handling|The above exception)|^[\w.]+(?::|$)")
_BRIEF_ERROR = _any_of(
    rf"(?:failed to|unable to|did not|cannot|can['’]t) (?:{_DO})\b|{_CANNOT}",
    r"no (?:output|results?|response|content|data)\b",
    r"not (?:yet )?(?:finished|done|available|implemented|supported)",
)
_REFUSAL = re.compile(
    rf"(?:{_SORRY})?(?:"
    + _any_of(
        r"i(?:['’]m| am) (?:\w+ )?(?:sorry|afraid|unable|not able|not allowed|not going to)",
        r"(?:i|we) (?:do not|don['’]t|did not|didn['’]t) (?:currently )?have "
        r"(?:access|the ability|permission|enough)",
        # A report may say at its beginning what could not be found.
        r"(?:i|we) (?!could(?: not|n['’]t) (?:determine|find|locate))"
        rf"(?:{_CANNOT}|must decline|(?:have|had) to (?:decline|stop))",
        r"(?:i|we) (?:(?:was|were|am|are) (?:not able|unable)|(?:wasn|weren|aren)['’]t able)",
        r"(?:i|we) (?:have not|haven['’]t|did not|didn['’]t) (?:yet )?"
        r"(?:finish|complete|manage|been able)",
        r"(?:i|we) (?:ran out of|need (?:more|additional|access|the|your)\b)",
        r"(?:(?:could|can|would) you )?please (?:provide|upload|share|send|attach|specify)\b",
        r"(?:es tut mir leid, aber|(?:je suis )?désolée?, mais|lo siento, pero|mi dispiace, ma)\b",
        r"leider kann ich|抱歉|对不起|申し訳",
        r"as an? (?:ai|artificial|large language|language)\b",
        r"(?:the|this|your) (?:\w+ )?(?:task|request|report|file|document|analysis|work|operation) "
        r"(?:can ?not|can['’]t|could not|couldn['’]t|(?:was|has|is) not|(?:was|has|is)n['’]t) "
        rf"(?:yet )?(?:be |been )?{_ENDED}",
    ).pattern
    + ")",
    re.IGNORECASE,
)
_PLACEHOLDER = _any_of(
    r"(?:to-?do|tbd|tba|tbc|fixme|xxx+|wip|placeholder|coming soon|under construction|n/?a|none"
    r"|null|nil|undefined|nan|empty|pending)\b(?:\W*|\s*[:(\-–—].*)",
    r"to be (?:done|written|determined|added|completed|announced|filled|decided|defined)\b.*",
    r"(?:work|draft|writing) in progress\b.*",
    r"(?:(?:this|it|the) (?:file )?(?:is )?(?:an? )?)?(?:placeholder|dummy|stub) "
    r"(?:text|content|file|document|report|output|data|for)\b.*|(?:this|it) is an? placeholder\W*",
    r"(?:(?:your|the|some|more) )?(?:content|text|report|summary|details?|analysis|results?) "
    r"(?:goes|go|will (?:go|be \w+)|comes?|to be) .*|(?:insert|write|add|put|enter)\b.*\bhere\W*",
    rf"\[[^\]]*\b(?:{_BLANK})\b[^\]]*\]\W*",
    rf"<[^>]*\b(?:{_BLANK})\b[^>]*>\W*",
    r"\{\{[^}]*\}\}\W*",
)
_CLAIM = re.compile(
    r"\W*(?:(?:the |this |all )?(?:task|work|report|job)?s?(?: (?:is|was|has been))? ?(?:all )?"
    r"(?:done|completed?|finished|success|successful|ok)(?: successfully)?|hello(?:,? world)?"
    r"|test|testing|asdf|foo|x)\W*",
    re.IGNORECASE,
)
_NO_BODY_LINE = re.compile(r"#{1,6}(?:\s.*)?|[-=*_~`|:\s]+|```.*|~~~.*|<!--.*-->")
_WORD = re.compile(r"\w+")
_REPEATED_CHARACTERS = 20_000
_FEW_WORDS, _MANY_WORDS = 3, 50
_FEW_CHARACTERS = 5
_PAGE = re.compile(r"\s*(?:<!doctype html|<html)", re.IGNORECASE)
_NEVER_PAGES = frozenset(
    ".csv .tsv .json .jsonl .png .jpg .jpeg .gif .webp .pdf .zip .gz .xlsx .docx .parquet .db .wav"
    " .mp3 .mp4".split()
)
_DECORATION = re.compile(r"^[\W_]+")
_ENVELOPE = frozenset(
    "error errors message messages detail details status statuscode status_code code type reason "
    "request_id requestid path timestamp success ok error_code error_description errorcode "
    "documentation_url trace stack name title instance data result".split()
)


class Fault(NamedTuple):
    """Why a text is no result."""

    code: SuspicionCode
    message: str


def fault_of(data: bytes, *, suffix: str = "", is_prose: bool = True) -> Fault | None:
    """Why the content of a file or an output is no result; ``None`` if it may be one.

    Args:
        data: the bytes.
        suffix: the end of the file's name, in lower case.
        is_prose: whether nothing but headings, or "Done.", is no result.
    """
    text = _decoded(data[:_WINDOW_BYTES])
    if text is None:
        return None if data.strip(b"\x00") else Fault("empty_output", "only zero bytes")
    if not any(character.isprintable() and not character.isspace() for character in text):
        if data[_WINDOW_BYTES:].strip():
            return None
        size = len(data)
        return Fault("empty_output", "0 bytes" if not size else f"{size:,} bytes of white space")
    return (
        _error(text, _decoded(data[-_END_BYTES:]) or text)
        or _other_kind(data, text, suffix)
        or _refusal(text)
        or _placeholder(text, is_prose=is_prose)
    )


def _decoded(data: bytes) -> str | None:
    """The text, also if it is cut within a character; ``None`` if it is none."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data[: len(data) // 2 * 2].decode("utf-16", "replace")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    is_text = text.count("\ufffd") * 20 <= len(text) and text.count("\x00") * 2 <= len(text)
    return text if is_text or not text else None


def _error(text: str, end: str) -> Fault | None:
    lines = [line[:_LINE_CHARACTERS] for line in text.splitlines() if line.strip()]
    plain = [line for line in lines if _is_body(line)] or lines
    first = _DECORATION.sub("", plain[0])
    first_line = plain[0].strip()[:80]
    size = len(text.strip())
    if _is_error_line(plain[0]):
        frame = _TRACE_LINE if first.startswith("Traceback (most recent call") else _FRAME
        errors = sum(bool(frame.match(line)) or _is_error_line(line) for line in plain)
        if size <= _ERROR_CHARACTERS or errors >= _ERROR_SHARE * len(plain):
            return Fault("error_output", f"is an error message: {first_line}")
    if _ends_with_traceback(end):
        return Fault("error_output", "ends with a traceback")
    if size <= _BRIEF_CHARACTERS and _BRIEF_ERROR.match(first):
        return Fault("error_output", f"says that it failed: {first_line}")
    if title := _error_page(text):
        return Fault("error_output", f"is an error page: {title[:80]}")
    if _is_error_object(text):
        return Fault("error_output", f"is an error as JSON: {first_line}")
    return None


def _is_body(line: str) -> bool:
    """Whether a line is no heading, rule, fence or comment of Markdown."""
    return _NO_BODY_LINE.fullmatch(line.strip()[:_LINE_CHARACTERS]) is None


def _is_error_line(line: str) -> bool:
    stamp = _TIMESTAMP.match(line)
    if stamp:
        line = line[stamp.end() :]
        if _LOGGED_ERROR.match(line):
            return True
    return _ERROR_LINE.match(_DECORATION.sub("", line)) is not None


def _ends_with_traceback(end: str) -> bool:
    at = end.rfind("Traceback (most recent call last)")
    if at < 0:
        return False
    lines = end[at:].rstrip().split("\n")[1:]
    return bool(lines) and all(_TRACE_LINE.match(line) for line in lines)


def _error_page(text: str) -> str:
    """The title of an error page; empty if the text is none."""
    head = text[:20_000].lstrip()
    if re.match(r"(?:<\?xml[^>]*>\s*)?<(?:\w+:)?(?:error|fault)\b", head, re.IGNORECASE):
        return head.split("\n")[0]
    if not re.match(r"(?:<!doctype|<html|<head|<body|<h1|<title|<center)", head, re.IGNORECASE):
        return ""
    for tag in ("title", "h1"):
        match = re.search(rf"<{tag}\b[^<>]*>([^<]{{0,300}})", head, re.IGNORECASE)
        if match and _PAGE_TITLE.match(match[1].strip()):
            return match[1].strip()
    return ""


def _is_error_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        value = parse_strict(text)
    except (NotStrictError, ValueError):
        return False
    if not isinstance(value, dict) or not {key.lower() for key in value} <= _ENVELOPE:
        return False
    fields = {key.lower(): item for key, item in value.items()}
    states = (fields.get("status"), fields.get("type"), fields.get("result"))
    messages = (fields.get("message"), fields.get("detail"), fields.get("title"))
    return (
        bool(fields.get("error") or fields.get("errors"))
        or any(str(state).lower() in ("error", "fail", "failed", "failure") for state in states)
        or any(fields.get(key) is False for key in ("success", "ok"))
        or any(_PAGE_TITLE.match(message) for message in messages if isinstance(message, str))
    )


def _other_kind(data: bytes, text: str, suffix: str) -> Fault | None:
    """A page in the place of a download, or JSON that is cut off."""
    if suffix in _NEVER_PAGES and _PAGE.match(text):
        return Fault("error_output", f"is a web page, and no {suffix} file")
    if suffix == ".json" and len(data) <= _WINDOW_BYTES:
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            after_value = text[error.pos :].strip()
            if not after_value or error.pos == 0 or error.msg.startswith("Unterminated string"):
                is_begun = text.lstrip()[:1] in ("{", "[")
                return Fault("error_output", "is cut off" if is_begun else "is not JSON")
        except (RecursionError, ValueError):
            return None
    return None


def _refusal(text: str) -> Fault | None:
    if len(text.strip()) > _REFUSAL_CHARACTERS:
        return None
    body = "\n".join(line for line in text.splitlines() if _is_body(line))
    start = _DECORATION.sub("", body[:_LINE_CHARACTERS])
    if _REFUSAL.match(start):
        return Fault("refusal", f"is a refusal: {start.splitlines()[0][:80]}")
    return None


def _placeholder(text: str, *, is_prose: bool) -> Fault | None:
    if not any(character.isalnum() for character in text):
        return Fault("empty_output", f"has nothing but {text.strip()[:40]}")
    lines = [line.strip()[:_LINE_CHARACTERS] for line in text.splitlines() if line.strip()]
    body = [line for line in lines if _is_body(line)]
    if not body:
        return Fault("placeholder", "has headings and no text") if is_prose else None
    if is_prose and len(text) <= _BRIEF_CHARACTERS and _CLAIM.fullmatch(" ".join(body)):
        return Fault("placeholder", f"has nothing but {body[0]}")
    words = _WORD.findall(text[:_REPEATED_CHARACTERS])
    distinct = len(set(words))
    is_repeated = len(words) >= _MANY_WORDS and distinct * 10 <= len(words)
    if is_prose and (is_repeated or (len(words) >= _FEW_WORDS and distinct == 1)):
        return Fault("placeholder", f"repeats itself: {body[0][:80]}")
    if is_prose and len(text) > _BRIEF_CHARACTERS and len(set(text)) <= _FEW_CHARACTERS:
        return Fault("placeholder", f"repeats itself: {body[0][:80]}")
    if all(_is_blank(line) for line in body):
        return Fault("placeholder", f"is a placeholder: {body[0][:80]}")
    if re.match(r"\W*lorem ipsum", " ".join(body[:2]), re.IGNORECASE):
        return Fault("placeholder", "is filler: lorem ipsum")
    return None


def _is_blank(line: str) -> bool:
    return any(_PLACEHOLDER.fullmatch(start) for start in (line, _DECORATION.sub("", line)))
