"""benchmarks/parts.py replaces parts of the ranking by name, which no type checker reads."""

import pkgutil
import runpy

from support.commands import CHECKOUT


def test_every_part_and_golden_set_that_it_names_exists() -> None:
    benchmark = runpy.run_path(str(CHECKOUT / "benchmarks" / "parts.py"))
    for target, _ in benchmark["PARTS"].values():
        assert pkgutil.resolve_name(target) is not None, target
    folder = benchmark["demo_overlays"]() / "golden"
    assert all((folder / f"{name}-v1.toml").is_file() for name in benchmark["GOLDEN_SETS"])
