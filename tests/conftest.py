"""Fixtures that every room's tests may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# ROLEBUNDLE_EXAMPLES=10000 is what the laws are measured with before a release.
settings.register_profile(
    "default",
    max_examples=int(os.environ.get("ROLEBUNDLE_EXAMPLES", "60")),
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")

CHECKOUT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Outside data beside the checkout; a checkout without it skips what needs it."""
    folder = Path(os.environ.get("ROLEBUNDLE_SHARED", CHECKOUT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no outside data at {folder.name}/ beside the checkout")
    return folder


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the corpus, cache or settings of whoever runs it."""
    home = tmp_path_factory.getbasetemp() / "home"
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    names = ("ROLEBUNDLE_DB", "ROLEBUNDLE_OVERLAYS", "ROLEBUNDLE_DEBUG", "ROLEBUNDLE_RERANK")
    for name in names:
        monkeypatch.delenv(name, raising=False)
