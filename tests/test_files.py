import errno
import os
import stat

import pytest

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
    for path in (lock, plain):
        with (
            pytest.raises(OutputError, match="in the way"),
            only_one(path, "it"),
        ):
            pass
    assert victim.read_text() == "mine"
    assert plain.read_text() == "notes of mine"
