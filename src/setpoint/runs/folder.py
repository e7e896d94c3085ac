"""The files of a run folder: written completely or not at all, and read with care."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from setpoint._files import flush, sync_folder


class RunError(ValueError):
    """A run folder that cannot be written or must not be trusted."""


RUN_FILE, CERTIFICATE_FILE, MODEL_FILE = "run.json", "certificate.json", "model.safetensors"
HISTORY_FILE, SCORES_FILE, REPORT_FILE = "history.jsonl", "scores.safetensors", "report.html"
FILES = (RUN_FILE, CERTIFICATE_FILE, MODEL_FILE, HISTORY_FILE, SCORES_FILE, REPORT_FILE)
LARGEST_JSON = 64 * 2**20


def check_free(folder: Path, *, force: bool) -> None:
    """RunError if a run cannot be written here.

    With ``force`` an earlier run is replaced; other files in the way are never removed.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RunError(f"{folder} is in the way: not a folder. Choose another --out.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    strange = sorted(path.name for path in folder.iterdir() if path.name not in FILES)
    if strange:
        found = f"it holds {strange[0]!r}, which no run writes"
        raise RunError(f"{folder} is not a run folder ({found}). Choose another --out.")
    if not force:
        raise RunError(f"{folder} holds a run already. Choose another --out, or add --force.")


def write_folder(folder: Path, files: Mapping[str, bytes], *, force: bool = False) -> None:
    """Write ``files`` beside ``folder`` and then give them its name, in one step.

    A reader, or a machine that loses power, sees the old folder or the new one, never a part.
    """
    check_free(folder, force=force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, content in files.items():
            with (draft / name).open("wb") as file:
                file.write(content)
                flush(file)
        os.chmod(draft, 0o755)
        _swap(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    sync_folder(folder.parent)


def read_file(folder: Path, name: str, *, largest: int | None = None) -> bytes:
    """The content of one file of a run.

    Raises:
        RunError: It is missing, longer than ``largest``, or no plain file inside the folder.
    """
    path = folder / name
    if name not in FILES:
        raise RunError(f"{folder}: {name!r} is not a file of a run.")
    try:
        # O_NOFOLLOW and a look at the open file: nothing can be put in its place in between.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | _no_wait())
    except FileNotFoundError:
        raise RunError(f"{path} is missing: {folder} is not a complete run folder.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {_reason(path, error)}.") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise RunError(f"{path} is not a plain file.")
    with os.fdopen(handle, "rb") as file:
        if largest is not None and status.st_size > largest:
            raise RunError(f"{path} is {status.st_size:,} bytes long, more than a run writes.")
        return file.read()


def _reason(path: Path, error: OSError) -> str:
    return "it is a link, and a run has none" if path.is_symlink() else str(error.strerror)


def _no_wait() -> int:
    return getattr(os, "O_NONBLOCK", 0)  # a pipe in place of a file must not hang us


def _swap(draft: Path, folder: Path) -> None:
    """Give ``draft`` the name of ``folder``; an older run there goes only once this succeeded."""
    if not folder.exists():
        os.rename(draft, folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    os.rename(folder, old / "run")
    try:
        os.rename(draft, folder)
    except BaseException:
        os.rename(old / "run", folder)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
