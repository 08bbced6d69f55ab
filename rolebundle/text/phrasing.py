"""Removes the phrases of a question that do not name its topic: "I am interested in articles on …".

Such stop structures consist of more than stop words, and their words lead both lanes to texts about
articles and interests (Callan, Croft and Broglio, "TREC and TIPSTER experiments with INQUERY",
1995; Huston and Croft, "Evaluating verbose query processing techniques", SIGIR 2010). English only.
Phrases that may be names are not removed: "list comprehension", "explain analyze", "find -name".
"""

from __future__ import annotations

import re
from functools import cache

_KIND = (
    r"(?:articles?|papers?|documents?|documentation|notes|literature|material|publications?|reports"
    r"|discussions?|descriptions?|studies|information|details|references|anything|something"
    r"|everything)"
)
_ABOUT = (
    r"(?:about|on|regarding|concerning|describing|discussing|covering|dealing\s+with|related\s+to"
    r"|relating\s+to|(?:that|which)\s+(?:deals?\s+with|describes?|discuss(?:es)?|covers?))"
)
_SOME = r"(?:(?:all|any|some|the|more|other|further|recent)\s+)*"
_OFTEN = r"(?:(?:also|currently|especially|mainly|mostly|only|particularly|primarily)\s+)?"
_FIRST_PERSON = r"(?:i|we)"
_ARE = r"(?:\s+am|\s+are|['’]m|['’]re)"
_WANT = r"(?:(?:\s+would|['’]d)\s+(?:like|prefer|rather)|\s+(?:want|need|wish))"
_LEARN = r"(?:find(?:\s+out)?|see|know|get|have|read|learn|understand|hear)"
_STARTS = r"(?:^|(?<=[.?!;:]))\s*"
_POLITE = r"(?:please\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)?"
_GIVE = r"(?:find|give|show|get|fetch|tell|list|provide|send|search\s+for|look\s+for|look\s+up)"
# The object of a phrase that is followed by the topic: "… in all papers on".
_WORKS = rf"(?:\s+{_SOME}{_KIND}\s+(?:{_ABOUT}|of)\b)?"

_PHRASES = (
    rf"(?:\b{_FIRST_PERSON}{_ARE}\s+(?:not\s+)?)?\b{_OFTEN}interested\s+in\b{_WORKS}",
    r"\b(?:(?:areas?|(?:sub)?topics?|subjects?|questions?)\s+)?of\s+(?:particular|special|great"
    r"|main|primary)\s+interest\b(?:\s+(?:to\s+(?:me|us)\s+)?(?:is|are|includes?)\b)?",
    rf"\b{_FIRST_PERSON}{_WANT}\s+(?:to\s+)?{_LEARN}\b(?:\s+(?:more\s+)?about\b|{_WORKS})",
    rf"\b{_FIRST_PERSON}{_WANT}\s+{_SOME}{_KIND}\s+(?:{_ABOUT}|of)\b",
    rf"\b{_FIRST_PERSON}{_ARE}\s+(?:(?:looking|searching)\s+for|seeking)\b{_WORKS}",
    rf"{_STARTS}{_POLITE}{_GIVE}\s+(?:(?:me|us)\s+)?{_SOME}{_KIND}\s+(?:{_ABOUT}|of)\b",
    rf"{_STARTS}{_POLITE}{_GIVE}\s+(?:me|us)\b(?:\s+(?:more\s+)?about\b)?",
    rf"{_STARTS}(?:(?:what|which|are\s+there)\s+)?{_SOME}{_KIND}\s+(?:(?:exist|are\s+there|is\s+there"
    rf"|(?:are\s+|is\s+)?available|do\s+we\s+have)\s+)?{_ABOUT}\b",
)
# Each phrase contains one of these words. They are searched first, because the patterns are slow to
# compile and most questions contain none.
_HINTS = frozenset(
    """
    anything article articles description descriptions details discussion discussions document
    documentation documents everything i information interest interested literature material me
    notes paper papers publication publications references reports something studies us we
    """.split()
)


def remove_phrasing(task: str) -> tuple[str, int]:
    """The task without phrases that do not name its topic, and how many were removed.

    ``"Find all papers about solid fuel."`` becomes ``"solid fuel."``. The rest may be empty or have
    no topic, which the caller must check.
    """
    if _HINTS.isdisjoint(re.split(r"[^a-z]+", task.lower())):
        return task, 0
    remaining, count = _pattern().subn(" ", task)
    return (" ".join(remaining.split()), count) if count else (task, 0)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase})" for phrase in _PHRASES), re.IGNORECASE)
