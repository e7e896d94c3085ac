"""Run folders: what ``setpoint train`` writes, safetensors and JSON, never pickle.

Reading a run needs no torch; :mod:`setpoint.runs.session` trains, and
:mod:`setpoint.runs.model` scores new rows.
"""

from setpoint.runs.folder import REPORT_FILE, RunError, check_free
from setpoint.runs.manifest import Manifest, read_manifest
from setpoint.runs.result import parse_certificate, read_certificate, read_result

__all__ = [
    "REPORT_FILE",
    "Manifest",
    "RunError",
    "check_free",
    "parse_certificate",
    "read_certificate",
    "read_manifest",
    "read_result",
]
