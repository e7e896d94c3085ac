"""Where a quick run writes: results that are shown are of full runs only."""

import tempfile
from pathlib import Path


def scratch(name: str) -> Path:
    """An empty place in the folder for temporary files; what an earlier quick run left goes."""
    file = Path(tempfile.gettempdir()) / f"{name}_quick.jsonl"
    file.unlink(missing_ok=True)
    return file
