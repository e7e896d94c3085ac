import os

import pytest

from setpoint import _files
from setpoint._files import OutputError
from setpoint.runs import RunError, check_free
from setpoint.runs.folder import read_file, write_run

FILES = {"run.json": b"{}", "report.html": b"<p>"}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_written_completely(tmp_path):
    write_run(tmp_path / "deep" / "run", FILES)
    assert content(tmp_path / "deep" / "run") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]


def test_or_not_at_all(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("setpoint._files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_run(tmp_path / "run", FILES)
    assert list(tmp_path.iterdir()) == []


def fail_when(monkeypatch, step):
    """Let the ``step``-th change of a name fail, on a system that cannot exchange folders."""
    rename, done = os.rename, []

    def failing(old, new):
        done.append(new)
        if len(done) == step:
            raise OSError(5, "broken disk")
        rename(old, new)

    monkeypatch.setattr("setpoint._files._exchange", lambda one, other: False)
    monkeypatch.setattr("setpoint._files.os.rename", failing)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_the_old_or_the_new_run_is_there_after_the_next_start(tmp_path, monkeypatch, step):
    folder = tmp_path / "run"
    write_run(folder, FILES)
    with monkeypatch.context() as patched:
        fail_when(patched, step)
        with pytest.raises(OSError, match="broken disk"):
            write_run(folder, {"run.json": b"new"}, force=True)
    check_free(folder, force=True)  # what every start does first
    assert content(folder) == (FILES if step < 3 else {"run.json": b"new"})
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_folders_are_exchanged_in_one_step(tmp_path, monkeypatch):
    write_run(tmp_path / "run", FILES)
    monkeypatch.setattr("setpoint._files.os.rename", None)
    write_run(tmp_path / "run", {"run.json": b"new"}, force=True)
    assert content(tmp_path / "run") == {"run.json": b"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_drafts_of_killed_programs_are_removed_and_living_ones_stay(tmp_path):
    for name in (".run.00000001.draft", ".run.00000002.draft", ".other.00000001.draft"):
        (tmp_path / name).mkdir()
    handle = os.open(tmp_path / ".run.00000002.draft", os.O_RDONLY)
    assert _files._lock(handle)
    write_run(tmp_path / "run", FILES)
    os.close(handle)
    there = sorted(path.name for path in tmp_path.iterdir())
    assert there == [".other.00000001.draft", ".run.00000002.draft", "run"]


def test_what_is_not_of_a_run_stays_in_its_folder(tmp_path, monkeypatch):
    """A folder that is called as a file of a run, and a file that comes between check and end."""
    folder = tmp_path / "run"
    (folder / "report.html").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"it holds 'report\.html/', which no run"):
        write_run(folder, FILES, force=True)
    (folder / "report.html").rmdir()
    write_run(folder, FILES)
    put = _files._put

    def appears(*given):
        (folder / "notes.txt").write_text("mine")
        (folder / "pictures").mkdir()
        put(*given)

    monkeypatch.setattr("setpoint._files._put", appears)
    write_run(folder, {"run.json": b"new"}, force=True)
    assert (folder / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "pictures", "run.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_is_replaced_only_by_force(tmp_path):
    folder = tmp_path / "run"
    write_run(folder, FILES)
    with pytest.raises(OutputError, match=r"holds results already.*--force"):
        write_run(folder, {"run.json": b"new"})
    assert content(folder) == FILES
    write_run(folder, {"run.json": b"new"}, force=True)
    assert content(folder) == {"run.json": b"new"}


def test_what_is_no_run_is_never_removed(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match=r"in use \(it holds 'thesis.tex'"):
        write_run(tmp_path, FILES, force=True)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(OutputError, match=r"cannot be made a folder|in use"):
            check_free(tmp_path / name, force=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_link_to_a_folder_is_followed(tmp_path):
    (tmp_path / "place").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "place")
    write_run(tmp_path / "link", FILES)
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "place") == FILES


def test_an_empty_folder_is_free(tmp_path):
    write_run(tmp_path / "run", FILES)
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "empty", FILES)
    assert content(tmp_path / "empty") == FILES


def test_no_path_leaves_the_folder(tmp_path):
    folder = tmp_path / "run"
    write_run(folder, FILES)
    (tmp_path / "secret").write_text("secret")
    for name in ("../secret", "/etc/passwd", "..", "sub/run.json"):
        with pytest.raises(RunError, match="is not a file of a run"):
            read_file(folder, name)
    (folder / "certificate.json").symlink_to(tmp_path / "secret")
    with pytest.raises(RunError, match="it is a link, and a run has none"):
        read_file(folder, "certificate.json")


def test_a_pipe_or_a_folder_in_place_of_a_file_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "run.json")
    (tmp_path / "history.jsonl").mkdir()
    for name in ("run.json", "history.jsonl"):
        with pytest.raises(RunError, match="is not a plain file"):
            read_file(tmp_path, name)
