"""The commands that `init` and `overlay new` propose, as a person copies them into a shell."""

import shutil
import subprocess
from shlex import quote

import pytest

from rolebundle.interfaces.cli.overlay import closing_lines

NAMES = ["notes", "my  notes", "a\nb", "it's\ta \x1b[31m", "right\u202eleft", "caf\udce9"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_proposed_command_names_the_folder_as_it_is() -> None:
    lines = [*closing_lines([], [f"printf '%s\\0' {quote(name)}" for name in NAMES])]
    assert all(line.isprintable() for line in lines)
    script = "\n".join(line.removeprefix("next: ") for line in lines)
    printed = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    assert printed.decode("utf-8", "surrogateescape").split("\0")[:-1] == NAMES
