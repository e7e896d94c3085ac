"""Where the data sets lie: the folder named by SETPOINT_DATA, else ../shared/data."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def path(name: str) -> Path:
    """The file ``name`` of the data folder; an error that says how to point to another folder."""
    folder = Path(os.environ.get("SETPOINT_DATA", ROOT.parent / "shared" / "data"))
    found = folder / name
    if not found.exists():
        raise FileNotFoundError(f"{found} does not exist; set SETPOINT_DATA to the data folder.")
    return found
