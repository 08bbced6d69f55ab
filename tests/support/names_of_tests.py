"""The names of the tests in a file, to check what documents and tables say of them."""

import re
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent.parent
# The second is the TestCase of a state machine. To parse the files would take ten times as long.
_NAMED = re.compile(r"^ *(?:(?:def|class) (test\w*)|(test\w*) = )", re.MULTILINE | re.IGNORECASE)


@cache
def names_of_tests(file: str) -> frozenset[str]:
    """The names of the tests and test classes in a file.

    Args:
        file: its path from the checkout.
    """
    source = (CHECKOUT / file).read_text(encoding="utf-8")
    return frozenset(defined or assigned for defined, assigned in _NAMED.findall(source))
