"""Metadata of documents, from flags, folder manifests and the document itself.

The nearest declaration of a key counts: front matter overrides manifests, which override flags. For
the keys that govern a document the order is the other way round; see :mod:`authority`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from rolebundle.contracts.base import Mistake, mistakes_in
from rolebundle.contracts.dates import date_in_name
from rolebundle.contracts.documents import (
    ATTACHED,
    CHECKBOX,
    DATED_BY,
    LANGUAGE,
    NOTES_OF_READING,
    OBSERVED_TYPE,
    OF_READING,
    PARTLY_READ,
    STATEMENT,
    Attributes,
    DocumentMetadata,
    locator_path,
    message_of,
)
from rolebundle.contracts.ingest import METADATA_KEYS, DeclaredMetadata, keys_that, utc_text
from rolebundle.errors import ConfigurationError, DocumentError, RolebundleError
from rolebundle.ingest.authority import Authority, folded_key, governing_key, lower_tier
from rolebundle.ingest.document_types import observed_type
from rolebundle.ingest.manifests import FileDefaults
from rolebundle.ingest.parsed import ParsedDocument
from rolebundle.ingest.readers import HEAVY_FORMATS, reader_name_for
from rolebundle.ingest.text_date import day_of_text
from rolebundle.resources import data_file
from rolebundle.text.decoding import one_line
from rolebundle.text.replaced import document_statements
from rolebundle.text.tasks import tasks_in
from rolebundle.text.words import language_of

_DESCRIPTIVE_KEYS = keys_that("describes")
_BY_LETTERS = {folded_key(key): key for key in keys_that("describes", "matched")}
_DATE_KEYS = data_file(__file__, "keys.toml")["dates"].split()
"""The letters of other tools' keys for the date of a document; the first one counts."""
_OTHER_KEYS = {"keywords": "tags", "authors": "retrieval_hints", "author": "retrieval_hints"}
"""Keys of other tools that mean the same to retrieval."""
_MAX_REFUSED = 20
_MAX_NOTES = 20
_MAX_SHOWN = 80
"""Characters of a value in a message."""
_MAX_STATEMENTS = 5
_PROSE_KINDS, _LANGUAGE_CHARS = ("heading", "paragraph", "list"), 2_000
"""The blocks that tell the language of a document, and how many characters of them."""
_MIN_LEFT_OUT = 0.1
"""A document of which the reader left out such a share is partly read."""


def validated(values: Mapping[str, object], place: str) -> DeclaredMetadata:
    """Validate the metadata of flags.

    Raises:
        ConfigurationError: ``bad_flag``, with the place, the keys and the allowed values.
    """
    checked, mistakes = _checked(values)
    _raise_any(map(_sentence, mistakes), place, ConfigurationError, "bad_flag")
    return checked


def _checked(values: Mapping[str, object]) -> tuple[DeclaredMetadata, list[Mistake]]:
    """The valid part of ``values``, and what is wrong with the rest."""
    try:
        return DeclaredMetadata.model_validate(dict(values)), []
    except ValidationError as error:
        mistakes = mistakes_in(error, DeclaredMetadata)
        bad = {mistake.place[0] for mistake in mistakes}
        good = {key: value for key, value in values.items() if key not in bad}
        return DeclaredMetadata.model_validate(good), mistakes


def _sentence(mistake: Mistake) -> str:
    key = str(mistake.place[0])
    if mistake.kind == "unknown":
        return f"unknown key {key!r}{mistake.guess}"
    return f"{key} = {repr(mistake.value)[:_MAX_SHOWN]} {mistake.message}"


def _raise_any(
    mistakes: Iterable[str], place: str, error_type: type[RolebundleError], code: str
) -> None:
    """Raise one error that names all mistakes, if there are any."""
    distinct = list(dict.fromkeys(mistakes))
    if distinct:
        hint = "correct it and run the same command again"
        if any(mistake.startswith("unknown key") for mistake in distinct):
            hint = f"allowed keys: {', '.join(METADATA_KEYS)}"
        raise error_type(code, f"{place}: {'; '.join(distinct[:_MAX_REFUSED])}", hint)


def resolve(
    path: str, defaults: FileDefaults, parsed: ParsedDocument, changed_at: str | None = None
) -> DocumentMetadata:
    """The metadata of one document.

    What it declares takes precedence, unless the levels above bind the key; keys of other tools
    become attributes. Everything takes precedence over what its format tells.

    Args:
        path: the file, relative to the ingested folder.
        defaults: what flags and manifests say of the file.
        parsed: the document.
        changed_at: when the file was last changed, ISO 8601 in UTC; ``None`` if it is not known.

    Raises:
        DocumentError: the document has a misspelled governance key or an invalid value, or is never
            valid. The message names all mistakes.
    """
    authority, ignored = defaults.authority, defaults.ignore_keys
    own = {name: value for name, value in parsed.declared.items() if name not in ignored}
    claims, attributes, mistakes = _sorted_keys(own)
    checked, wrong_values = _checked(claims)
    for mistake in wrong_values:
        key = str(mistake.place[0])
        if key in _DESCRIPTIVE_KEYS:
            attributes.setdefault(key, claims[key])
        else:
            mistakes.append(_sentence(mistake))
    own_values, may_not_govern = checked.declared_values(), authority.may_not_govern
    weighed, refused = authority.weigh(own_values, may_not_govern=may_not_govern)
    # Properties of the format without a meaning here. Invalid values of others are no error,
    # because they are not declared.
    inferred = {key: value for key, value in parsed.inferred.items() if value}
    usable, _ = _checked({key: inferred.pop(key) for key in [*inferred] if key in METADATA_KEYS})
    merged = {**usable.declared_values(), **authority.values, **weighed}
    declared_date = {**authority.values, **weighed}.get("updated_at")
    dated_by = "" if declared_date else _add_date(merged, path, parsed, changed_at)
    # Answers name the claims that do not count.
    merged.setdefault("supersedes", checked.supersedes or [])
    merged.setdefault("trust_tier", lower_tier("general", authority.max_trust))
    valid_from, valid_until = merged.get("valid_from"), merged.get("valid_until")
    if valid_from and valid_until and valid_from > valid_until:
        mistakes.append(f"valid_from {valid_from} is after valid_until {valid_until}")
    _raise_any(mistakes, f"{path}:{parsed.declared_at}", DocumentError, "bad_metadata")
    others = [(key, merged.pop(old_key, ())) for old_key, key in _OTHER_KEYS.items()]
    others.append(("tags", [value for kind, value in parsed.found if kind == "tag"]))
    for key, texts in others:
        if texts:
            merged[key] = list(dict.fromkeys([*merged.get(key, ()), *texts]))
    own_title = str(merged.get("title") or "")
    derived_id = _name_document(merged, path, parsed.key, authority)
    shown = None
    # One file with many documents says nothing about each of them.
    if "document_type" not in merged and (not parsed.key or parsed.key.startswith(ATTACHED)):
        place = locator_path(derived_id, merged["source_id"], path)
        shown = observed_type(place.replace(ATTACHED, "/"), own_title, parsed)
    # The id of a record is a part of its derived id, so that nothing of it is lost.
    harmless = {f"document_id: {derived_id}", f"document_id: {parsed.key}"}
    self_declared = authority.self_declared(weighed)
    own_keys = flattened({**inferred, **attributes})
    names = merged["title"], PurePosixPath(path).stem
    lists = {name: tuple(value) for name, value in merged.items() if isinstance(value, list)}
    return DocumentMetadata(
        **{**merged, **lists},
        inferred_at=None if merged.get("updated_at") else changed_at,
        attributes=_with_reading(own_keys, parsed, dated_by, shown, names),
        self_declared=tuple(self_declared),
        refused_claims=tuple(claim for claim in refused if claim not in harmless)[:_MAX_REFUSED],
        reach=authority.reach(self_declared),
    )


def _add_date(
    merged: dict[str, Any], path: str, parsed: ParsedDocument, changed_at: str | None
) -> str:
    """Add the date of a document that declares none, and return what it is from, or nothing.

    That in the name of its file, which is of what it is about, and then that of its text or format,
    which also may say more exactly when. In a file of several documents their own dates are first,
    and that of a mail is more exact than a name without a day. ``nov 23`` may be a day.

    A day in the text counts only up to the date of the office file and of the file system, so that
    it never moves a document forward.
    """
    file_name, of_format = PurePosixPath(path).name, merged.get("updated_at") or ""
    is_mail = merged.get("document_type") == "mail"
    is_office = not is_mail and reader_name_for(path) in HEAVY_FORMATS
    latest = min(filter(None, (of_format, changed_at)), default="")
    may_state = not (parsed.key or parsed.has_fields) and (is_office or not of_format)
    name = date_in_name(file_name)
    in_text = day_of_text(parsed.blocks, latest[:10], name) if may_state else ""
    in_text = in_text if in_text <= latest[:10] else ""
    if in_text:
        merged["updated_at"] = of_format = utc_text(in_text) or ""
    # The year has two digits after the name of a month.
    has_short_year = len(name) == len("2023-11") and name[:4] not in file_name
    may_be_day = has_short_year and re.search(rf"[^\W\d_][\W_]+{name[2:4]}(?!\d)", file_name)
    if may_be_day and of_format[5:7] in ("", name[5:7]):
        name = ""
    if not (name or of_format):
        return ""
    has_day = len(name) == len("2026-03-12")
    if not name or (of_format and (parsed.key or (is_mail and not has_day))):
        return "text" if in_text else "format"
    if in_text and name.isdecimal():
        return "text"  # The year may be that for which it is planned.
    if of_format.startswith(name):
        by_name = "name and format" if len(name) == len("2026") else "name without a day"
        return "name" if has_day else "text" if in_text else by_name
    # Of the year or month that the name says, the day that is nearest to the date of the format.
    year, month = int(name[:4]), int(name[5:7] or 12)
    first, last = f"{name}-01-01"[:10], f"{year}-{month:02}-{monthrange(year, month)[1]}"
    merged["updated_at"] = utc_text(first if has_day or of_format < first else last)
    return "name" if has_day else "name without a day"


def _with_reading(
    attributes: Attributes,
    parsed: ParsedDocument,
    dated_by: str,
    shown_type: tuple[str, str] | None,
    names: tuple[str, str],
) -> Attributes:
    """The attributes with what the reader says, of which the document can declare nothing."""
    pairs = [(k, text) for k, texts in attributes for text in texts if not k.startswith(OF_READING)]
    notes = (one_line(note)[:_MAX_CHARS] for note in parsed.notes[:_MAX_NOTES])
    pairs += [(NOTES_OF_READING, note) for note in notes]
    pairs += [(DATED_BY, dated_by)] if dated_by else []
    pairs += [(OBSERVED_TYPE, one_line(text)[:_MAX_CHARS]) for text in shown_type or ()]
    pairs += [(f"{OF_READING}{kind}", text) for kind, text in parsed.found if kind != "tag"]
    pairs += [(CHECKBOX, s) for b in parsed.blocks if b.kind != "code" for s in tasks_in(b.text)]
    # What a mail quotes is said of another message.
    own = [b.text for b in parsed.blocks if b.kind != "code" and not message_of(b.anchor)[1]]
    known = " ".join(names)
    if own and not any(document_statements(own[0], known)):
        # The title of an addendum may go on below: "Addendum no. 1", "to the agreement of …".
        own[:1] = [" ".join(" ".join(own[:2]).split())[:_MAX_CHARS], own[0]]
    said = (s for text in (names[0], *own) for s in document_statements(text, known))
    prose = "\n".join(b.text for b in parsed.blocks if b.kind in _PROSE_KINDS)[:_LANGUAGE_CHARS]
    pairs += [(LANGUAGE, code) for code in [language_of(prose)] if code not in ("en", "und")]
    pairs += [(STATEMENT, statement) for statement in islice(dict.fromkeys(said), _MAX_STATEMENTS)]
    if parsed.left_out >= _MIN_LEFT_OUT:
        pairs.append((PARTLY_READ, "true"))
    return grouped(pairs)


def _name_document(
    merged: dict[str, Any], path: str, record_name: str, authority: Authority
) -> str:
    """Add the source, id, title and address that nothing declares, and return the derived id."""
    joint = "" if not record_name or record_name.startswith(ATTACHED) else "#"
    location = f"{path}{joint}{record_name}"
    source_id = merged.setdefault("source_id", authority.default_source)
    derived_id = f"{source_id}/{location}"
    merged.setdefault("document_id", derived_id)
    merged.setdefault("uri", location)
    file_name = PurePosixPath(path).stem.replace("_", " ").replace("-", " ")
    merged.setdefault("title", record_name or file_name)
    return derived_id


def _sorted_keys(
    own: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, object], list[str]]:
    """The metadata, the attributes, and the keys that look like misspelled governance keys.

    Keys of other tools that have the same meaning as a key of ours are metadata.
    """
    claims: dict[str, object] = {}
    attributes: dict[str, object] = {}
    mistakes: list[str] = []
    for name, value in own.items():
        if name in METADATA_KEYS:
            if value != "" or name not in _DESCRIPTIVE_KEYS:
                claims[name] = value
        elif meant := governing_key(name):
            mistakes.append(f"unknown key {name!r}; did you mean {meant}?")
        elif (key := _BY_LETTERS.get(folded_key(name), name)) not in own:
            claims[key] = value
        else:
            attributes[name] = value
    if attributes and claims.get("updated_at") is None:
        # The keys of other tools may have a date.
        firsts = {folded_key(key): texts[0] for key, texts in flattened(attributes)}
        dates = (utc_text(firsts[letters]) for letters in _DATE_KEYS if letters in firsts)
        claims["updated_at"] = next(filter(None, dates), None)
    return claims, attributes, mistakes


# -- attributes --
#
# Attributes: keys of front matter and properties of a format that have no meaning of their own.
#
# They are words of the index and can be filtered by. They grant nothing and hide nothing.


_MAX_VALUES = 100
_MAX_KEY_CHARS = 200
_MAX_CHARS = 1000


def flattened(values: Mapping[str, object]) -> Attributes:
    """Attributes of nested values: keys joined by dots, all values of a key in their order.

    Empty values are left out. There are at most 100 values, each of at most 1,000 characters.
    """
    return grouped(islice(_texts("", values), _MAX_VALUES))


def grouped(pairs: Iterable[tuple[str, str]]) -> Attributes:
    """Attributes of keys, each with one value."""
    found: dict[str, dict[str, None]] = {}
    for key, text in pairs:
        found.setdefault(key, {})[text] = None
    return tuple(sorted((key, tuple(texts)) for key, texts in found.items()))


def _texts(key: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            own = one_line(str(name).replace(":", " "))
            yield from _texts(f"{key}.{own}" if key else own, item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _texts(key, item)
    elif value is not None:
        text = str(value).lower() if isinstance(value, bool) else one_line(str(value))
        if text and 0 < len(key) <= _MAX_KEY_CHARS:
            yield key, text[:_MAX_CHARS]
