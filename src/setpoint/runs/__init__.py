"""Run folders: what ``setpoint train`` writes, safetensors and JSON, never pickle.

Reading a run needs no torch; :mod:`setpoint.runs.training` trains, and
:mod:`setpoint.runs.model` scores new rows.
"""

from setpoint.runs.checks import history_file, note_check, read_checks
from setpoint.runs.folder import REPORT_FILE, Manifest, RunError, check_free, read_manifest
from setpoint.runs.result import (
    parse_certificate,
    read_any_certificate_file,
    read_certificate,
    read_certificate_file,
    read_result,
)

__all__ = [
    "REPORT_FILE",
    "Manifest",
    "RunError",
    "check_free",
    "history_file",
    "note_check",
    "parse_certificate",
    "read_any_certificate_file",
    "read_certificate",
    "read_certificate_file",
    "read_checks",
    "read_manifest",
    "read_result",
]
