"""A part of a test that runs in a forked child."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def in_a_child(work: Callable[[], Any]) -> Any:
    """Run ``work`` in a forked child.

    Returns:
        What ``work`` returned, through JSON.

    Raises:
        AssertionError: ``work`` failed. Its error is on standard error.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                json.dump(work(), pipe)
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, "the child failed; its error is on standard error"
    return json.loads(text)
