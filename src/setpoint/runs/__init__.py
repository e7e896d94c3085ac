"""Run folders: what ``setpoint train`` leaves behind, safetensors and JSON, never pickle.

Only :mod:`setpoint.runs.model` imports torch.
"""

from setpoint.runs.folder import RunError, check_free, write_folder
from setpoint.runs.manifest import Manifest, read_manifest

__all__ = ["Manifest", "RunError", "check_free", "read_manifest", "write_folder"]
