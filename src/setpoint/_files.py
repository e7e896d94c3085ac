"""All writing of files and folders: what is the user's is never lost.

* An existing file or folder is replaced only with ``force``, also one that appears while a command
  works, and never one that was read. What replaces a file has its permissions.
* A file is written under another name beside its own and then renamed; a folder is written beside
  its own place and then exchanged with it. A reader, or a machine that loses power, finds the old
  content or the new, never a part of it.
* Of several files that belong together all are renamed or none; what a program that was killed in
  between has left to do stands in a file beside them, and the next command that names them does it.
* Drafts of programs that were killed are removed by the next one that writes there. A living
  program holds a lock on its draft, so it keeps it.
* Links are followed. Devices and pipes are written into, not replaced; a pipe waits for its reader
  for :data:`PATIENCE` seconds.

Commands refuse what exists without ``--force``. Functions of Python that are given a path
(``save_decision``, ``to_onnx``, ``plot``) replace it in one step, as ``torch.save`` does.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import socket
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

# None on a system without such locks
fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None

_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux
_NO_LINK, _AT_ONCE = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
_DRAFT, _MOVES, _OLD = ".draft", ".moves", ".setpoint-old"
_NAME_BYTES = 200  # of a name that a draft keeps: the system takes 255
PATIENCE = 60.0
"""Seconds that a pipe without a reader is waited for."""
_OWN_NAME = re.compile(r"\.([0-9a-f]{8})\.(draft|moves)")
_OWN_LOCK = re.compile(rb"(process \d+ on .*\n?)?")
_TEMPORARY: dict[Path, int] = {}  # drafts and locks, with the process that made them


class OutputError(ValueError):
    """A place where nothing may be written, and what to do instead."""


def check_output(
    path: Path, *, force: bool = False, inputs: Iterable[Path] = (), option: str = "--out"
) -> None:
    """OutputError unless a file may be written at ``path``; call it before any work is done.

    Args:
        path: Where to write.
        force: Whether a file that is there may be replaced.
        inputs: Files and folders that are read, which are never replaced.
        option: The option that named it, for messages.
    """
    if path.is_dir():
        raise OutputError(f"{option} {path} is a folder; name a file.")
    target = Path(os.path.realpath(path))
    finish_moves(target)
    if not path.exists() and not target.parent.is_dir():
        raise OutputError(
            f"{option} {path}: the folder {path.parent} does not exist; make it first."
        )
    for read in map(_opened_as, inputs):
        there = read.exists() and path.exists() and path.samefile(read)
        if there or (read.is_dir() and target.is_relative_to(os.path.realpath(read))):
            raise OutputError(f"{option} {path} is the file to read; name another.")
    if _is_stream(path):
        return
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{option} {path}: {NOT_YOURS.format(target.parent)}")
    if not os.path.lexists(target):
        return
    if not path.is_file():
        raise OutputError(f"{option} {path} is neither a file nor a pipe; name another.")
    if not force:
        raise OutputError(f"{option} {path} exists; name another file, or replace it by --force.")


def check_output_folder(
    folder: Path,
    known: Iterable[str],
    *,
    force: bool | None = False,
    continued: bool = False,
    inputs: Iterable[Path] = (),
) -> None:
    """OutputError unless files may be written into ``folder``; call it before any work is done.

    Args:
        folder: Where to write.
        known: Patterns of the names that the program writes there, those of folders with a slash
            behind. Other files are in the way.
        force: Whether such files that are there may be replaced; None: the command has no --force.
        continued: Whether they are parts of an unfinished result that is gone on with.
        inputs: Files and folders that are read: none of them, and nothing around them, is replaced.
    """
    place = Path(os.path.realpath(folder))
    for read in map(_opened_as, inputs):
        source = Path(os.path.realpath(read))
        if read.exists() and (source.is_relative_to(place) or place.is_relative_to(source)):
            raise OutputError(f"--out {folder} is, holds or lies in {read}, which is read.")
    recover_folder(folder)
    _remove_dead(folder, ".")
    above = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if above.exists() and not above.is_dir():
        raise OutputError(f"--out {folder} cannot be made a folder: {above} is a file.")
    for home in {above, above if above != folder else folder.parent}:
        if home.exists() and not os.access(home, os.W_OK):
            raise OutputError(f"--out {folder}: {NOT_YOURS.format(home)}")
    strange = _strange(folder, known)
    if strange:
        found = f"it holds {strange[0]!r}, which no run of this command wrote"
        raise OutputError(f"--out {folder} is in use ({found}). Choose another.")
    there = folder.exists() and any(folder.iterdir())
    if there and not force and not continued:
        advice = "" if force is None else ", or add --force"
        raise OutputError(f"--out {folder} holds results already. Choose another{advice}.")


NOT_YOURS = "you may not write into the folder {}; choose another."


def _opened_as(read: Path) -> Path:
    """A file to read; that of standard input, which a shell may have opened by its name."""
    return Path("/dev/stdin") if read == Path("-") else read


def _strange(folder: Path, known: Iterable[str]) -> list[str]:
    """What is in a folder and has none of the names that are known."""
    inside = sorted(folder.iterdir()) if folder.exists() else []
    names = [path.name + "/" * (path.is_dir() and not path.is_symlink()) for path in inside]
    return [name for name in names if not any(fnmatch(name, form) for form in known)]


def _is_stream(path: Path) -> bool:
    """Whether ``path`` is a pipe or a character device, which are written into."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


@contextmanager
def replacing(path: Path, *, force: bool = True) -> Iterator[BinaryIO]:
    """A binary file that takes the name ``path`` when the context ends without an error."""
    with replacing_all([path], force=force) as (file,):
        yield file


@contextmanager
def replacing_all(
    paths: Sequence[Path], *, force: bool | Collection[Path] = True
) -> Iterator[list[BinaryIO]]:
    """Binary files that take these names together when the context ends without an error.

    Without ``force``, or if it names other files, a name that is taken by then is an OutputError,
    and none of them is given.
    """
    token, drafts = token_hex(4), dict[Path, Path]()
    with _naming(paths), ExitStack() as stack:
        files: list[BinaryIO] = []
        drafted: list[BinaryIO] = []
        for path in paths:
            if _is_stream(path):
                files.append(stack.enter_context(_open_stream(path)))
                continue
            target = Path(os.path.realpath(path))
            remove_drafts(target)
            draft = drafts[target] = _draft_of(target, token)
            drafted.append(stack.enter_context(_locked_draft(draft)))
            if target.exists():
                _copy_owner(target, draft)
            files.append(drafted[-1])
        yield files
        for file in drafted:
            flush(file)
        replaced = paths if force is True else force or ()
        forced = {Path(os.path.realpath(path)) for path in replaced}
        if len(drafts) > 1:
            _name_together(drafts, token, forced)
        else:
            _name_all(drafts, forced)
    for folder in {target.parent for target in drafts}:
        sync_folder(folder)


@contextmanager
def _naming(paths: Sequence[Path]) -> Iterator[None]:
    """Say where there is no space, which the system does not."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) and error.filename is None:
            error.filename = ", ".join(map(str, paths))
        raise


def _open_stream(path: Path) -> BinaryIO:
    """A pipe or device, open to write into; OutputError if nobody reads from it."""
    if not stat.S_ISFIFO(path.stat().st_mode):
        return path.open("wb")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                problem = f"nobody has read from this pipe for {PATIENCE:g} seconds"
                raise OutputError(f"{path}: {problem}; name a file.") from None
            time.sleep(0.05)
            continue
        os.set_blocking(handle, True)
        return os.fdopen(handle, "wb")


@contextmanager
def _locked_draft(draft: Path) -> Iterator[BinaryIO]:
    """A new file with our lock, removed at the end unless it was given another name."""
    with _temporary(draft), ExitStack() as stack:
        while True:
            file = stack.enter_context(draft.open("xb"))
            _lock(file.fileno())
            if _same(file.fileno(), draft):  # else somebody took it for a dead program's
                break
        yield file


def _copy_owner(old: Path, new: Path) -> None:
    """Give a file or folder the owner and the permissions of the one that it replaces."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(new, old.stat().st_uid, old.stat().st_gid)
    shutil.copymode(old, new)


def write_file(path: Path, content: bytes, *, force: bool = True) -> None:
    """Put ``content`` at ``path`` in one step."""
    write_files({path: content}, force=force)


def write_files(contents: Mapping[Path, bytes], *, force: bool | Collection[Path] = True) -> None:
    """Put files that belong together at their places; ``force``: all, or those that it names."""
    with replacing_all(list(contents), force=force) as files:
        for file, content in zip(files, contents.values(), strict=True):
            file.write(content)


def _draft_of(target: Path, token: str) -> Path:
    return target.with_name(f"{_stem(target)}{token}{_DRAFT}")


def _stem(target: Path) -> str:
    """What names of drafts begin with; long names are cut."""
    return os.fsdecode(os.fsencode(f".{target.name}")[:_NAME_BYTES]) + "."


def _name_all(drafts: Mapping[Path, Path], forced: Collection[Path]) -> None:
    """Give drafts their names, those that have not got them yet; all or, if one is taken, none.

    Those of ``forced`` may be taken.
    """
    named: list[Path] = []
    try:
        for target, draft in drafts.items():
            if draft.exists():
                if not (target.exists() and target.samefile(draft)):
                    _name(draft, target, target in forced)
                named.append(target)
    except FileExistsError:
        for target in named:
            target.unlink()
        raise OutputError(
            f"{target} was made by another program meanwhile, and stays. Name another file, or "
            "replace it by --force."
        ) from None


def _name(draft: Path, target: Path, force: bool) -> None:
    """Give a draft its name; FileExistsError if that is taken and not to be replaced."""
    if not force:
        try:
            os.link(draft, target)
            return
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            target.open("xb").close()
    os.replace(draft, target)


def _name_together(drafts: Mapping[Path, Path], token: str, forced: Collection[Path]) -> None:
    """Give several drafts their names, with a record that a program can go on from."""
    first = next(iter(drafts))
    record = first.with_name(f"{_stem(first)}{token}{_MOVES}")
    draft = first.with_name(f"{_stem(first)}names.{token}{_DRAFT}")
    with _temporary(record), _locked_draft(draft) as file:
        known = {"forced": sorted(map(str, forced)), "files": list(map(str, drafts))}
        file.write(json.dumps(known).encode())
        flush(file)
        os.rename(draft, record)
        try:
            _name_all(drafts, forced)
        except OutputError:
            raise
        except BaseException:  # a signal came just then
            _name_all(drafts, forced)
            raise


def finish_moves(path: Path) -> None:
    """Give files their names that a killed program was about to give, ``path`` first of them."""
    for record in _own(path.parent, _stem(path), "moves"):
        try:
            known, token = json.loads(record.read_bytes()), record.name[-14:-6]
            drafts = {Path(name): _draft_of(Path(name), token) for name in known["files"]}
            forced = {Path(name) for name in known["forced"]}
        except (ValueError, TypeError, KeyError, OSError):
            continue  # not ours
        with suppress(OutputError):
            _name_all(drafts, forced)
        for used in (*drafts.values(), record):
            used.unlink(missing_ok=True)


def save_figure(path: Path, figure: Any, dpi: int) -> None:
    """Write a figure of matplotlib, in the format of the ending (png without one)."""
    undated = {"Date": None} if path.suffix == ".svg" else None
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:] or "png", dpi=dpi, metadata=undated)


def write_folder(
    folder: Path, files: Mapping[str, bytes], *, also: Iterable[str] = (), force: bool = False
) -> None:
    """Put a folder with these files in the place of ``folder`` in one step.

    Raises:
        OutputError: It holds other files than these and those called ``also``, or such without
            ``force``.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    known = (*files, *also)
    check_output_folder(folder, known, force=force)
    draft = _draft_of(folder, token_hex(4))
    with _naming([folder]), _temporary(draft), _locked_folder(draft):
        for name, content in files.items():
            with (draft / name).open("wb") as file:
                if (folder / name).is_file():
                    _copy_owner(folder / name, draft / name)
                file.write(content)
                flush(file)
        if folder.exists():
            _copy_owner(folder, draft)
        _put(draft, folder, force)
        for name in _strange(draft, known):  # somebody put it there since the check
            os.rename(draft / name, folder / name)
    sync_folder(folder.parent)


@contextmanager
def _locked_folder(draft: Path) -> Iterator[None]:
    """Make a folder with our lock."""
    with ExitStack() as stack:
        while not draft.exists():  # it goes if somebody takes it for a dead program's
            draft.mkdir()
            with suppress(FileNotFoundError):
                handle = os.open(draft, os.O_RDONLY)
                stack.callback(os.close, handle)
                _lock(handle)
        yield


def _put(draft: Path, folder: Path, force: bool) -> None:
    """Give ``draft`` the name of ``folder``; an older folder there gets the name of the draft."""
    if not (folder.exists() and force):
        if folder.exists():
            folder.rmdir()  # it is empty
        os.rename(draft, folder)
    elif not _exchange(draft, folder):
        old = folder.with_name(f".{folder.name}{_OLD}")  # see recover_folder
        os.rename(folder, old)
        os.rename(draft, folder)
        os.rename(old, draft)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    names = os.fsencode(one), os.fsencode(other)
    return rename is not None and rename(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0


def recover_folder(folder: Path) -> None:
    """Mend what a killed program left at ``folder``: an old folder between two names, drafts."""
    old = folder.with_name(f".{folder.name}{_OLD}")
    if old.is_dir():
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, folder)
    remove_drafts(folder)


def remove_drafts(path: Path) -> None:
    """Remove drafts of ``path`` whose programs are gone."""
    _remove_dead(path.parent, _stem(path))


def _remove_dead(folder: Path, start: str) -> None:
    """Remove drafts in a folder whose names begin so and whose programs are gone."""
    for draft in _own(folder, start, "draft"):
        with suppress(OSError):
            _remove(draft)


def _own(folder: Path, start: str, kind: str) -> Iterator[Path]:
    """What programs that are gone have left in a folder, by its name; each is locked by us."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        own = path.name.startswith(start) and _OWN_NAME.fullmatch(path.name[-15:])
        if not own or own[2] != kind:
            continue
        try:  # links are not ours, and a pipe would wait
            handle = os.open(path, os.O_RDONLY | _NO_LINK | _AT_ONCE)
        except OSError:
            continue
        try:
            plain = stat.S_IFMT(os.fstat(handle).st_mode) in (stat.S_IFREG, stat.S_IFDIR)
            if plain and _lock(handle, wait=False) and _same(handle, path):
                yield path
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool = True) -> bool | None:
    """Whether this program has the lock of an open file now; the system releases it at its end.

    Without ``wait`` another program may have it. None: this file system has no locks.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_lock(path: Path) -> bool:
    """Whether a file is one that :func:`only_one` has written."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return bool(_OWN_LOCK.fullmatch(file.read(300)))


@contextmanager
def only_one(path: Path, option: str = "") -> Iterator[None]:
    """Be the only program that writes ``path``, a file or folder, while the context lasts.

    It holds the lock file beside the place that ``path`` leads to, which goes when the context
    ends. The lock of a program that was killed is free.

    Raises:
        OutputError: Another program holds it; the message says which one, on which machine.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f"{_stem(target)}lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(lock) and not _is_lock(lock):
        raise OutputError(f"{lock} is in the way: move it, a lock of this name is needed.")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
    except PermissionError:
        raise OutputError(f"{option} {path}: {NOT_YOURS.format(lock.parent)}".strip()) from None
    try:
        if _lock(handle, wait=False) is False or not _same(handle, lock):
            who = os.read(handle, 200).decode(errors="replace").strip() or "another process"
            what = f"{option} {path}".strip()
            raise OutputError(f"{what} is being written by {who}. Wait for it, or choose another.")
        with _temporary(lock):
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            yield
    finally:
        os.close(handle)


@contextmanager
def _temporary(path: Path) -> Iterator[None]:
    """Remove a file or folder when the context ends, or by :func:`remove_temporary` before that."""
    _TEMPORARY[path] = os.getpid()
    try:
        yield
    finally:
        try:
            _remove(path)
        except BaseException:  # a signal came just then
            _remove(path)
            raise
        finally:
            _TEMPORARY.pop(path, None)


def remove_temporary() -> None:
    """Remove the drafts and locks of this process, which is about to end without an exception."""
    for path, process in list(_TEMPORARY.items()):
        if process == os.getpid():
            _remove(path)


def _remove(path: Path) -> None:
    for _ in range(2):  # one file that could not be removed just then keeps its whole folder
        if path.is_dir():
            with suppress(OSError):  # it replaced a folder that nobody may write into
                path.chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
    if not path.is_dir():
        path.unlink(missing_ok=True)


def _same(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def flush(file: BinaryIO) -> None:
    """Return when the content of ``file`` is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make new names in ``folder`` durable, on systems that can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
