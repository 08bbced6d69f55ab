"""The scan at the door: hidden text, hidden markup, instructions to a model, secrets.

Pure functions over a document's text; what becomes of a finding is the caller's to decide. The
parts import what they need when they are first used, so that nothing else pays for them.
"""

from __future__ import annotations

from rolebundle.scan.scan import Scannable, ScanResult, Verdict, scan_texts
from rolebundle.scan.settings import ScanSettings

__all__ = ["ScanResult", "ScanSettings", "Scannable", "Verdict", "scan_texts"]
