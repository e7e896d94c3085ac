import os

import pytest

from setpoint.runs import RunError, check_free
from setpoint.runs.folder import read_file, write_folder

FILES = {"run.json": b"{}", "report.html": b"<p>"}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_written_completely(tmp_path):
    write_folder(tmp_path / "deep" / "run", FILES)
    assert content(tmp_path / "deep" / "run") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]


def test_or_not_at_all(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("setpoint.runs.folder.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path / "run", FILES)
    assert list(tmp_path.iterdir()) == []


def test_an_older_run_stays_when_the_new_one_fails(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    write_folder(folder, FILES)
    rename = os.rename

    def fails_for_the_new_one(old, new):
        if str(new) == str(folder) and ".old." not in str(old):
            raise OSError(5, "broken disk")
        rename(old, new)

    monkeypatch.setattr("setpoint.runs.folder.os.rename", fails_for_the_new_one)
    with pytest.raises(OSError, match="broken disk"):
        write_folder(folder, {"run.json": b"new"}, force=True)
    assert content(folder) == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_is_replaced_only_by_force(tmp_path):
    folder = tmp_path / "run"
    write_folder(folder, FILES)
    with pytest.raises(RunError, match=r"holds a run already.*--force"):
        write_folder(folder, {"run.json": b"new"})
    assert content(folder) == FILES
    write_folder(folder, {"run.json": b"new"}, force=True)
    assert content(folder) == {"run.json": b"new"}


def test_what_is_no_run_is_never_removed(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match=r"not a run folder \(it holds 'thesis.tex'"):
        write_folder(tmp_path, FILES, force=True)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(RunError, match="in the way"):
            check_free(tmp_path / name, force=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_an_empty_folder_is_free(tmp_path):
    write_folder(tmp_path / "run", FILES)
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", FILES)
    assert content(tmp_path / "empty") == FILES


def test_no_path_leaves_the_folder(tmp_path):
    folder = tmp_path / "run"
    write_folder(folder, FILES)
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
