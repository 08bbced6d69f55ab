"""Running the command line: in this process for the many, as a real process for the few."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolebundle.interfaces.cli.main import main

CHECKOUT = Path(__file__).parent.parent.parent
SAMPLE = CHECKOUT / "sample_corpus"
PROGRAM = (
    sys.executable,
    "-c",
    "from rolebundle.interfaces.cli.main import main; main()",
)
CODED = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10}


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def invoke(*arguments: str | Path) -> Outcome:
    """Run a command in this process, through ``main`` and its mapping of errors."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code
    assert isinstance(code, int)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return Outcome(code, *texts)


def run(
    *arguments: str | bytes | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    before: Callable[[], None] | None = None,
    timeout: float = 60,
) -> Outcome:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [*PROGRAM, *map(os.fsencode, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        preexec_fn=before,
        timeout=timeout,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def is_coded(outcome: Outcome) -> None:
    """An answer or a coded error, with the next step; never a traceback, never "internal"."""
    assert outcome.code in CODED, (outcome.code, outcome.err)
    assert "Traceback" not in outcome.err
    assert "[internal]" not in outcome.err
    if outcome.code:
        assert "rror" in outcome.err or "efused" in outcome.err, outcome.err


_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def as_a_common_user() -> None:
    """Before the start of a process: file permissions hold, also where root runs the tests."""
    if os.geteuid() == 0:
        import ctypes

        prctl = ctypes.CDLL(None, use_errno=True).prctl
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            if prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                os._exit(99)
