"""`rolebundle overlay`: data to standard output, messages to standard error, exit code 3."""

import json
from pathlib import Path

import pytest

from rolebundle.interfaces.cli.main import main
from support.overlay_files import write


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exited:
        main(["overlay", *arguments])
    captured = capsys.readouterr()
    assert isinstance(exited.value.code, int)
    return exited.value.code, captured.out, captured.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keys: dict[str, object] = {"version": "1.0", "mission": "Read.", "label": "A \x1b[31mlabel"}
    for role_id, more in (("base", {}), ("child", {"extends": "base"})):
        (tmp_path / f"{role_id}.json").write_text(
            json.dumps({**keys, "role_id": role_id, **more}), encoding="utf-8"
        )
    return tmp_path


def test_list(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, err = run(capsys, "list", "--overlay-dir", str(folder))
    assert (code, err) == (0, "")
    assert "security-reviewer" in out
    assert "extends base" in out
    assert "\x1b" not in out
    code, out, _ = run(capsys, "list", "--json")
    assert code == 0
    assert len(json.loads(out)["overlays"]) == 14


def test_show(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, err = run(capsys, "show", "child", "--overlay-dir", str(folder), "--json")
    overlay = json.loads(out)
    assert (code, err) == (0, "")
    assert overlay["path"] == str(folder / "child.json")
    assert overlay["extends"] == [{"role_id": "base", "path": str(folder / "base.json")}]
    assert overlay["overlay"]["retrieval_policy"]["max_selected_chunks"] == 10
    assert run(capsys, "show", str(folder / "child.json"))[1] == out


def test_lint_without_a_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "lint")
    assert (code, out) == (0, "")
    assert "14 overlays checked: 0 errors, 0 warnings" in err
    assert "not checked against a corpus" in err


def test_lint_with_errors(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    path = folder / "bad.json"
    path.write_text('{"version": "1.0", "role_id": "bad", "misson": ""}', encoding="utf-8")
    for wanted in (str(path), "bad"):
        code, out, err = run(capsys, "lint", wanted, "child", "--overlay-dir", str(folder))
        assert code == 3
        assert out.startswith(f"{path}: error: misson: unknown key; did you mean mission?")
        assert "2 overlays checked: 1 error, 0 warnings" in err
    code, out, _ = run(capsys, "lint", str(path), "--json")
    assert code == 3
    assert json.loads(out)["overlays"][0]["findings"][0]["code"] == "unknown_key"


def test_lint_names_the_mistakes_of_all_files(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """Also beside a name that has no overlay."""
    write(folder, "bad", misson="", label=1)
    write(folder, "heir", extends="bad", lable="")
    code, out, err = run(capsys, "lint", "heir", "nobody", "--overlay-dir", str(folder))
    assert code == 3
    for place in ("misson", "nobody"):
        assert f"{place}: " in out
    assert "2 errors in overlays" in err
