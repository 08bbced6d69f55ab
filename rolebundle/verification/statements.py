"""What people and agents write into the corpus by themselves: reasons, decisions."""

from __future__ import annotations

from rolebundle.contracts.terms import Authority
from rolebundle.errors import UsageError
from rolebundle.scan.scan import Scannable, scan_texts
from rolebundle.scan.settings import ScanSettings


def checked_statement(text: str, authority: Authority) -> str:
    """The text with its secrets masked.

    Raises:
        UsageError: ``unsafe_text``: an agent wrote instructions to a model, or hidden text. Other
            agents will read it.
    """
    [result] = scan_texts([Scannable(text)], ScanSettings())
    kinds = {finding.kind for finding in result.findings}
    unsafe = sorted(kind for kind in kinds if not kind.startswith(("secret_", "personal_")))
    if unsafe and authority == "agent":
        raise UsageError(
            "unsafe_text",
            f"the text reads like an attack on other readers: {', '.join(unsafe)}",
            "say in plain words what is wrong",
        )
    return result.text
