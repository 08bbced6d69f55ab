"""tools/trace_retrieve.py counts what one answer runs through."""

import runpy
import sys

import pytest

from support.commands import CHECKOUT

SOURCE = '"""Doc\nstring."""\n\n# comment\nX = [\n    1,\n]\n\n\ndef f():\n    """Doc."""\n    return """a\nb"""\n'


@pytest.mark.slow
def test_it_counts_lines_and_aliases_and_follows_the_pipeline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROLEBUNDLE_MODEL", "static")
    monkeypatch.setattr(sys, "argv", ["trace_retrieve.py", "--verbose"])
    tool = runpy.run_path(str(CHECKOUT / "tools" / "trace_retrieve.py"))
    assert tool["code_lines"](SOURCE) == 6
    tool["main"]()
    shown = capsys.readouterr().out
    assert "rolebundle/retrieval/pipeline.py" in shown and "rolebundle/gate" not in shown
    figures = dict(line.split() for line in shown.splitlines()[-4:])
    assert [*figures] == ["modules", "classes", "aliases", "lines"]
    assert int(figures["lines"]) > int(figures["classes"]) > int(figures["aliases"]) > 0
