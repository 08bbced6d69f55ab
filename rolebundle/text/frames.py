"""How a question is put, apart from what it is about: "I am interested in articles on …".

Such stop structures are no single stop words, and their words pull both lanes toward texts about
articles and interests (Callan, Croft and Broglio, "TREC and TIPSTER experiments with INQUERY",
1995; Huston and Croft, "Evaluating verbose query processing techniques", SIGIR 2010). English
only. What might be a name goes untouched: "list comprehension", "explain analyze", "find -name".
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
_WHO = r"(?:i|we)"
_ARE = r"(?:\s+am|\s+are|['’]m|['’]re)"
_WANT = r"(?:(?:\s+would|['’]d)\s+(?:like|prefer|rather)|\s+(?:want|need|wish))"
_LEARN = r"(?:find(?:\s+out)?|see|know|get|have|read|learn|understand|hear)"
_STARTS = r"(?:^|(?<=[.?!;:]))\s*"
_POLITE = r"(?:please\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)?"
_GIVE = r"(?:find|give|show|get|fetch|tell|list|provide|send|search\s+for|look\s+for|look\s+up)"
# What a frame speaks of where it names no topic yet: "… in all papers on".
_WORKS = rf"(?:\s+{_SOME}{_KIND}\s+(?:{_ABOUT}|of)\b)?"

_FRAMES = (
    rf"(?:\b{_WHO}{_ARE}\s+(?:not\s+)?)?\b{_OFTEN}interested\s+in\b{_WORKS}",
    r"\b(?:(?:areas?|(?:sub)?topics?|subjects?|questions?)\s+)?of\s+(?:particular|special|great"
    r"|main|primary)\s+interest\b(?:\s+(?:to\s+(?:me|us)\s+)?(?:is|are|includes?)\b)?",
    rf"\b{_WHO}{_WANT}\s+(?:to\s+)?{_LEARN}\b(?:\s+(?:more\s+)?about\b|{_WORKS})",
    rf"\b{_WHO}{_WANT}\s+{_SOME}{_KIND}\s+(?:{_ABOUT}|of)\b",
    rf"\b{_WHO}{_ARE}\s+(?:(?:looking|searching)\s+for|seeking)\b{_WORKS}",
    rf"{_STARTS}{_POLITE}{_GIVE}\s+(?:(?:me|us)\s+)?{_SOME}{_KIND}\s+(?:{_ABOUT}|of)\b",
    rf"{_STARTS}{_POLITE}{_GIVE}\s+(?:me|us)\b(?:\s+(?:more\s+)?about\b)?",
    rf"{_STARTS}(?:(?:what|which|are\s+there)\s+)?{_SOME}{_KIND}\s+(?:(?:exist|are\s+there|is\s+there"
    rf"|(?:are\s+|is\s+)?available|do\s+we\s+have)\s+)?{_ABOUT}\b",
)
# One of these words stands in every frame; looked for first, since the patterns take a while to
# compile and most questions have none.
_TELLING = frozenset(
    """
    anything article articles description descriptions details discussion discussions document
    documentation documents everything i information interest interested literature material me
    notes paper papers publication publications references reports something studies us we
    """.split()
)


def without_frames(task: str) -> tuple[str, int]:
    """A task without the phrases that only ask, and how many there were.

    ``"Find all papers about solid fuel."`` becomes ``"solid fuel."``. What is left may be empty, or
    without a topic: whoever calls has to look.
    """
    if _TELLING.isdisjoint(re.split(r"[^a-z]+", task.lower())):
        return task, 0
    rest, count = _frames().subn(" ", task)
    return (" ".join(rest.split()), count) if count else (task, 0)


@cache
def _frames() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{frame})" for frame in _FRAMES), re.IGNORECASE)
