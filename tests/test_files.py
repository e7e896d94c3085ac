import errno
import os
import stat

import pytest

from setpoint import _files
from setpoint._files import (
    OutputError,
    check_output_folder,
    only_one,
    replacing,
    write_file,
    write_folder,
)


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "file"
    write_file(path, b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch, call):
    path = tmp_path / "file"
    write_file(path, b"old")

    def crash(*_):
        raise OSError("disk on fire")

    monkeypatch.setattr(os, call, crash)
    with pytest.raises(OSError, match="disk on fire"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_are_those_of_a_new_file(tmp_path):
    write_file(tmp_path / "ours", b"")
    (tmp_path / "usual").touch()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_draft_in_a_folder_is_in_the_way_only_while_its_program_lives(tmp_path):
    (tmp_path / "run.json").touch()
    (tmp_path / ".report.html.0a1b2c3d.draft").touch()  # left by a killed `report`
    check_output_folder(tmp_path, ["run.json", "report.html"], force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    with replacing(tmp_path / "report.html"), pytest.raises(OutputError, match="is in use"):
        check_output_folder(tmp_path, ["run.json", "report.html"], force=True)


def test_a_draft_goes_although_one_of_its_files_resists_once(tmp_path, monkeypatch):
    """Found by the attack "files: crash", case 20000032."""
    write_folder(tmp_path / "run", {"a": b"old", "b": b"old"})
    unlink, failures = os.unlink, iter([True])

    def resists(*given, **options):
        if next(failures, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        unlink(*given, **options)

    monkeypatch.setattr(os, "unlink", resists)
    write_folder(tmp_path / "run", {"a": b"new"}, also=["b"], force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "a").read_bytes() == b"new"


def test_files_of_the_user_that_look_like_drafts_or_locks_stay(tmp_path):
    thesis = tmp_path / "mine" / ".thesis.draft"
    thesis.parent.mkdir()
    thesis.write_text("mine")
    old = tmp_path / ".mine.old"
    old.mkdir()
    with pytest.raises(OutputError):
        check_output_folder(thesis.parent, ["run.json"])
    write_file(tmp_path / "d.csv", b"x")
    assert thesis.read_text() == "mine"
    assert old.is_dir()
    victim, lock = tmp_path / "victim.txt", tmp_path / ".run.lock"
    victim.write_text("mine")
    lock.symlink_to(victim)
    plain = tmp_path / ".other.lock"
    plain.write_text("notes of mine")
    for name in ("run", "other"):
        with (
            pytest.raises(OutputError, match="in the way"),
            only_one(tmp_path / name),
        ):
            pass
    assert victim.read_text() == "mine"
    assert plain.read_text() == "notes of mine"


@pytest.mark.parametrize(
    "write", [write_file, lambda place, text: write_folder(place, {"a": text})]
)
def test_a_draft_that_was_taken_for_a_dead_one_is_made_anew(tmp_path, monkeypatch, write):
    """Two programs on one file: the one removes the other's draft before that has its lock."""
    lock, removed = _files._lock, []

    def late(handle, **how):
        if not removed:
            (draft,) = tmp_path.glob(".*.draft")
            removed.append(draft.rmdir() if draft.is_dir() else draft.unlink())
        return lock(handle, **how)

    monkeypatch.setattr("setpoint._files._lock", late)
    write(tmp_path / "out", b"new")
    (there,) = tmp_path.iterdir()
    assert (there / "a" if there.is_dir() else there).read_bytes() == b"new"


def test_two_names_of_one_file_have_one_lock(tmp_path):
    (tmp_path / "link").symlink_to("state")
    with (
        only_one(tmp_path / "state"),
        pytest.raises(OutputError, match="is being written by process"),
        only_one(tmp_path / "link"),
    ):
        pass


def test_a_name_as_long_as_the_system_allows(tmp_path):
    name = "é" * 125 + ".html"  # 255 bytes
    with only_one(tmp_path / name):
        for content in (b"old", b"new"):
            write_file(tmp_path / name, content)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"new")]


def test_a_pipe_that_nobody_reads_is_told(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("setpoint._files.PATIENCE", 0.1)
    with pytest.raises(OutputError, match="nobody has read from this pipe"):
        write_file(tmp_path / "pipe", b"text")


def test_a_pipe_in_place_of_a_lock_or_a_draft_is_not_waited_for(tmp_path):
    for name in (".run.lock", ".run.0a1b2c3d.draft", ".run.0a1b2c3d.moves"):
        os.mkfifo(tmp_path / name)
    check_output_folder(tmp_path / "run", ())
    _files.check_output(tmp_path / "run")
    with pytest.raises(OutputError, match="is in the way"), only_one(tmp_path / "run"):
        pass
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_system_without_locks_can_be_written_to(tmp_path, monkeypatch):
    draft = tmp_path / ".a.0a1b2c3d.draft"
    draft.touch()

    def unsupported(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr("setpoint._files.fcntl.flock", unsupported)
    with only_one(tmp_path / "a"):
        write_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert draft.exists()  # of a living program, for all we know


def test_a_loop_of_links_is_no_place(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for force in (False, True):
        with pytest.raises(OutputError, match="neither a file nor a pipe"):
            _files.check_output(tmp_path / "loop", force=force)


def test_a_folder_that_nobody_may_write_into_goes_when_it_is_replaced(tmp_path):
    write_folder(tmp_path / "run", {"a": b"old"})
    (tmp_path / "run").chmod(0o555)
    write_folder(tmp_path / "run", {"a": b"new"}, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "a").read_bytes() == b"new"
    (tmp_path / "run").chmod(0o755)


def test_a_lock_in_a_folder_of_somebody_else_is_told_with_the_folder(tmp_path, monkeypatch):
    """Root may write everywhere, so the system is asked by a stand-in."""

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("setpoint._files.os.open", refuse)
    told = rf"--state .*s\.json: you may not write into the folder {tmp_path}"
    with pytest.raises(OutputError, match=told), only_one(tmp_path / "s.json", "--state"):
        pass
