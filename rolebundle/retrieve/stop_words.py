"""English words that say nothing about a topic and are left out of the lexical query."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further get had
    has have having he her here hers him his how i if in into is it its itself just let like may me
    might more most must my no nor not now of off on once one only or other our ours out over own
    per please same shall she should so some such than that the their theirs them then there these
    they this those through to too under until up upon us very was we were what when where whether
    which while who whom whose why will with within without would yes yet you your yours
    """.split()
)
