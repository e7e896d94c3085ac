"""Every command and option that writes: what is there already is safe."""

import argparse
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cli.shell import run, write_data, write_scores

from setpoint import _files, cli
from setpoint._files import OutputError, only_one, save_figure
from setpoint.cli.common import output_file

GOAL = ("--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
FOLDERS = {"train": "--out", "front": "--out", "demo": "--out"}
"""Options that name a folder to write, by command; all others of type Path are read."""
READ = {
    "certify": {"file", "test", "plan", "labels", "unlabelled"},
    "plan": {"file"},
    "report": {"source", "certificate", "history"},
    "decide": {"file", "certificate"},
    "check": {"certificate", "file"},
    "card": {"source"},
    "train": {"file", "test"},
    "predict": {"run_folder", "file"},
    "front": {"file"},
    "demo": set(),
    "watch": {"certificate", "file", "reference", "replay"},
}
OWN = {"watch": {"state", "page"}, "check": {"history"}}
"""Options that name a file which the command replaces if it is its own, as tests show."""


def options(command):
    """The arguments of a command, from its parser."""
    parser = cli.make_parser(command)
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return commands.choices[command]._actions


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_path_is_read_or_checked_before_it_is_written(command):
    """A new option with a path must be listed here or be of the type ``output_file``."""
    actions = options(command)
    paths = {a.dest for a in actions if a.type is Path}
    folder = {FOLDERS[command].strip("-")} if command in FOLDERS else set()
    assert paths - folder - OWN.get(command, set()) <= READ[command], paths
    if any(a.type is output_file for a in actions):
        assert any(a.dest == "force" for a in actions)
    for action in actions:  # nothing else takes a name of a file
        assert (
            action.metavar is None
            or "FILE" not in action.metavar
            or action.type
            in (
                Path,
                output_file,
            )
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    write_scores(folder / "s.csv")
    assert run("certify", folder / "s.csv", *GOAL, "--out", folder / "c.json") == 0
    return folder


def commands(made):
    """Every command that writes a file, without its --out."""
    scored = ("--score", "s", "--certificate", made / "c.json")
    return {
        "certify": ("certify", made / "s.csv", *GOAL),
        "decide": ("decide", made / "s.csv", *scored),
        "report": ("report", made / "s.csv", *scored, "--label", "y"),
        "card": ("card", made / "c.json"),
    }


def test_the_page_of_certify_is_a_file_like_others(made, tmp_path, capsys):
    page = tmp_path / "p.html"
    words = ("certify", made / "s.csv", *GOAL, "--page", page)
    assert run(*words) == 0
    before = page.read_bytes()
    assert run(*words) == 2
    assert "exists; name another file, or replace it by --force" in capsys.readouterr().err
    assert page.read_bytes() == before
    assert run(*words[:-1], made / "s.csv", "--force") == 2
    assert "is the file to read" in capsys.readouterr().err
    assert run(*words[:-1], tmp_path / "x", "--out", tmp_path / "x") == 2
    assert "is another output, too" in capsys.readouterr().err
    unlabelled = ("certify", made / "s.csv", "--score", "s", "--goal", "coverage <= 0.1")
    assert run(*unlabelled, "--page", tmp_path / "q.html") == 2
    assert (
        "--page shows one goal, or --accept and --reject, on labelled rows"
        in capsys.readouterr().err
    )


WRITERS = ("certify", "decide", "report", "card")


def test_the_writers_are_all_that_write_a_file():
    found = {c for c in cli.COMMANDS if any(a.type is output_file for a in options(c))}
    assert found == {*WRITERS, "plan", "predict", "watch"}  # these have tests of their own


@pytest.mark.parametrize("name", WRITERS)
def test_files(made, tmp_path, capsys, name):
    command = commands(made)[name]
    out = tmp_path / "out.csv"
    out.write_text("mine")
    assert run(*command, "--out", out) == 2
    assert "exists; name another file, or replace it by --force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(out)
    assert run(*command, "--out", link, "--force") == 0
    assert link.is_symlink()
    written = out.read_bytes()
    assert written != b"mine"
    assert run(*command, "--out", tmp_path / "new.csv") == 0
    assert run(*command, "--out", "/dev/null") == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert run(*command, "--out", tmp_path) == 2
    assert "is a folder; name a file" in capsys.readouterr().err
    assert run(*command, "--out", tmp_path / "no" / "where") == 2
    assert "does not exist; make it first" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "new.csv", "out.csv"]


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_read_is_never_written(made, tmp_path, capsys, name):
    command = commands(made)[name]
    for read in (part for part in command if isinstance(part, Path)):
        before = read.read_bytes()
        (tmp_path / "again").unlink(missing_ok=True)
        (tmp_path / "again").symlink_to(read)
        for out in (read, tmp_path / "again"):
            assert run(*command, "--out", out, "--force") == 2
            assert "is the file to read; name another" in capsys.readouterr().err
        assert read.read_bytes() == before


@pytest.mark.parametrize("name", WRITERS)
def test_a_pipe_is_written_into(made, tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    script = "import sys; from cli.shell import run; sys.exit(run(*sys.argv[1:]))"
    words = [sys.executable, "-c", script, *map(str, commands(made)[name])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([*words, "--out", tmp_path / "pipe"], env=env, stdout=-3) as process:
        content = (tmp_path / "pipe").read_bytes()
        assert process.wait() == 0
    assert len(content) > 100
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_nothing(made, tmp_path, capsys, monkeypatch, name):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("setpoint._files.os.fsync", full)
    assert run(*commands(made)[name], "--out", tmp_path / "out") == 2
    assert f"No space left on device: '{tmp_path / 'out'}'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_two_programs_on_one_folder(tmp_path):
    with (
        only_one(tmp_path / "run", "--out"),
        pytest.raises(OutputError, match=f"--out .*run is being written by process {os.getpid()}"),
        only_one(tmp_path / "run", "--out"),
    ):
        pass
    (tmp_path / ".run.lock").write_text("process 1 on elsewhere")  # left by a killed program
    with only_one(tmp_path / "run", "--out"):
        assert str(os.getpid()) in (tmp_path / ".run.lock").read_text()
    assert list(tmp_path.iterdir()) == []


def test_a_second_training_says_who_holds_the_folder(made, tmp_path, capsys):
    goal = ("--label", "y", "--goal", "maximize recall subject to fpr <= 0.1")
    with only_one(tmp_path / "run"):
        assert run("train", made / "s.csv", *goal, "--out", tmp_path / "run") == 2
    assert f"is being written by process {os.getpid()} on" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_json_says_what_was_written(made, tmp_path, capsys):
    assert run(*commands(made)["decide"], "--out", tmp_path / "d.csv", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == sum(told["decisions"].values()) == 1000


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_speaks_json(command):
    assert any(a.dest == "json" for a in options(command))


def test_a_check_as_json(made, tmp_path, capsys):
    new = tmp_path / "new.csv"
    write_scores(new, seed=1)
    new.write_text(new.read_text() + "0.5,,a\n")
    words = ("check", made / "c.json", new, "--score", "s", "--label", "y")
    code = run(*words, "--json")
    told, notes = capsys.readouterr()
    assert json.loads(told)["exit_code"] == code
    assert "1 row without a label in 'y' left out" in notes


def test_the_page_of_a_run_is_replaced_by_force_alone(made, tmp_path, capsys):
    data = write_data(tmp_path / "data.csv", rows=600)
    goal = ("--label", "churn", "--goal", "maximize recall subject to fpr <= 0.2")
    short = ("--epochs", 1, "--model", "linear", "--no-baseline")
    assert run("train", data, *goal, *short, "--out", tmp_path / "run") in (0, 1)
    page = tmp_path / "run" / "report.html"
    page.write_text("my notes")
    capsys.readouterr()
    assert run("report", tmp_path / "run") == 2
    assert "report.html exists; name another file" in capsys.readouterr().err
    assert page.read_text() == "my notes"
    assert run("report", tmp_path / "run", "--out", tmp_path / "run" / "run.json", "--force") == 2
    assert run("report", tmp_path / "run", "--force") == 0
    assert page.read_text() != "my notes"


def test_a_front_replaces_nothing_but_its_own(tmp_path, capsys):
    data = write_data(tmp_path / "data.csv", rows=400)
    words = ("front", data, "--label", "churn", "--points", 3, "--steps", 1, "--quiet")
    out = tmp_path / "front"
    out.mkdir()
    (out / "front.png").write_text("holidays")
    for name in ("", "point-cloud.csv", "point-000/thesis.txt", "point-001"):  # ever more
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).mkdir() if name == "point-001" else name and (out / name).write_text("mine")
        assert run(*words, "--out", out) == 2
        assert "which no run of this command wrote). Choose another.\n" in capsys.readouterr().err
        assert (out / "front.png").read_text() == "holidays"
    with only_one(tmp_path / "other"):
        assert run(*words, "--out", tmp_path / "other") == 2
    assert f"is being written by process {os.getpid()} on" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.png", "b.svg", "c"])
def test_pictures_are_replaced_in_one_step(tmp_path, monkeypatch, name):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    path = tmp_path / name
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("setpoint._files.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            save_figure(path, Figure(), dpi=20)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "old")]
    save_figure(path, Figure(), dpi=20)
    assert path.read_bytes()[:4] in (b"\x89PNG", b"<?xm")


def test_a_plan_of_a_killed_program_is_finished_by_the_next(made, tmp_path, capsys):
    """Rows and plan are both the old ones or both the new ones, with --force, too."""
    words = ("plan", made / "s.csv", "--score", "s", "--goal", "fpr <= 0.1")
    rows, beside = tmp_path / "rows.csv", tmp_path / "rows.csv.plan.json"
    beside.write_text("mine")
    assert run(*words, "--out", rows) == 2
    assert "rows.csv.plan.json exists" in capsys.readouterr().err
    again = (*words, "--seed", 1, "--out", rows, "--force")
    assert run(*again) == 0
    new = rows.read_bytes(), beside.read_bytes()
    for wanted in ("plan", "certify"):
        assert run(*words, "--out", rows, "--force") == 0
        assert beside.read_bytes() != new[1]
        killed_between_names(*again)
        assert (rows.read_bytes() == new[0]) != (beside.read_bytes() == new[1])
        if wanted == "plan":
            assert run(*words, "--out", rows) == 2
        else:
            found = ("certify", made / "s.csv", *GOAL[:2], *GOAL[4:], "--plan", beside)
            assert run(*found, "--labels", made / "s.csv") == 2
        assert (rows.read_bytes(), beside.read_bytes()) == new
        assert sorted(path.name for path in tmp_path.iterdir()) == [rows.name, beside.name]


def killed_between_names(*words):
    """Run a command in a process that ends before the second of its files gets its name."""
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        return
    replace, done = os.replace, []

    def stopped(*names):
        if done:
            os.kill(os.getpid(), signal.SIGKILL)
        done.append(replace(*names))

    os.replace = stopped
    os._exit(run(*words))


def test_a_certificate_and_its_page_change_together(made, tmp_path):
    names = tmp_path / "c.json", tmp_path / "p.html"
    words = ("certify", made / "s.csv", *GOAL, "--out", names[0], "--page", names[1], "--force")
    assert run(*words) == 0
    killed_between_names(*words, "--confidence", 0.9)
    new = [b"0.9," in names[0].read_bytes(), b"with 90 % confidence" in names[1].read_bytes()]
    assert new == [True, False]
    assert run(*words[:-1]) == 2  # they are there
    assert b"with 90 % confidence" in names[1].read_bytes()


def opened(*words):
    """The exit code of a command, and the files that it opened to read."""
    global opening
    opening = set()
    try:
        return run(*words), {Path(name) for name in opening}
    finally:
        opening = None


opening = None
"""Names of files that are opened to read, while somebody wants to know."""


def _hear(event, given):
    if event == "open" and opening is not None and isinstance(given[0], str | os.PathLike):
        mode, flags = given[1:]
        if not (set(mode) & set("wax+") if mode else flags & (os.O_WRONLY | os.O_CREAT)):
            opening.add(os.path.realpath(given[0]))


sys.addaudithook(_hear)


@pytest.fixture(scope="module")
def trained(made):
    """A run and its data, and checks of the certificate and of the run."""
    data = write_data(made / "data.csv", rows=400)
    goal = ("--label", "churn", "--goal", "maximize recall subject to fpr <= 0.2")
    short = ("--epochs", 1, "--model", "linear", "--no-baseline", "--quiet")
    assert run("train", data, *goal, *short, "--out", made / "run") in (0, 1)
    for certificate, rows, score in (
        ("c.json", "s.csv", ("--score", "s")),
        ("run", "data.csv", ()),
    ):
        label = ("--label", "y" if score else "churn")
        assert run("check", made / certificate, made / rows, *score, *label) in (0, 1)
    return made


@pytest.mark.parametrize("name", [*WRITERS, "plan", "predict", "report a run", "card a run"])
def test_no_file_that_is_read_is_written_named_or_not(trained, tmp_path, capsys, name):
    """What a command reads is found by looking; one of them was the history of checks."""
    made = tmp_path / "made"
    shutil.copytree(trained, made)
    if name == "certify":  # other certificates in the folder of --out are counted
        (made / "c.json").unlink()
    command = {
        **commands(made),
        "plan": ("plan", made / "s.csv", "--score", "s", "--goal", "fpr <= 0.1"),
        "predict": ("predict", made / "run", made / "data.csv"),
        "report a run": ("report", made / "run"),
        "card a run": ("card", made / "run"),
    }[name]
    code, seen = opened(*command, "--out", tmp_path / "out.csv")
    read = {path for path in seen if path.is_relative_to(made)}
    assert code == 0
    assert read
    history = {"report": "c.checks.jsonl", "report a run": "run.checks.jsonl"}
    assert name not in history or made / history[name] in read
    for path in read:
        before = path.read_bytes()
        assert run(*command, "--out", path, "--force") == 2, path
        assert "is the file to read; name another" in capsys.readouterr().err
        assert path.read_bytes() == before


@pytest.mark.parametrize("command", ["train", "front"])
def test_no_folder_that_is_written_holds_what_is_read(tmp_path, capsys, command):
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    data = write_data(run_folder / ("model.txt" if command == "train" else "front.json"), rows=300)
    words = {"train": ("--goal", "fpr <= 0.2", "--force"), "front": ("--points", 3)}[command]
    for out in (run_folder, data / "deeper"):
        assert run(command, data, "--label", "churn", *words, "--out", out) == 2
        assert "which is read" in capsys.readouterr().err
    assert [path.name for path in run_folder.iterdir()] == [data.name]


@pytest.mark.parametrize("name", [*WRITERS, "plan"])
@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_while_a_command_runs_stays(
    made, tmp_path, capsys, monkeypatch, name, links
):
    plan = ("plan", made / "s.csv", "--score", "s", "--goal", "fpr <= 0.1")
    words = (*{**commands(made), "plan": plan}[name], "--out", tmp_path / "out")
    flush = _files.flush

    def appears(file):
        flush(file)
        (tmp_path / "out").write_text("mine")

    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("setpoint._files.flush", appears)
    if not links:
        monkeypatch.setattr("setpoint._files.os.link", no_links)
    assert run(*words) == 2
    assert "was made by another program meanwhile, and stays" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out", "mine")]
    (tmp_path / "out").unlink()
    monkeypatch.setattr("setpoint._files.flush", flush)
    assert run(*words) == 0


@pytest.mark.parametrize("name", WRITERS[:3])
def test_a_file_that_a_shell_opened_to_be_read_is_an_input(made, tmp_path, capsys, name):
    """``setpoint certify - --out s.csv --force < s.csv``."""
    rows, keep = tmp_path / "s.csv", os.dup(0)
    shutil.copy(made / "s.csv", rows)
    words = ["-" if word == made / "s.csv" else word for word in commands(made)[name]]
    with rows.open() as file:
        os.dup2(file.fileno(), 0)
    try:
        assert run(*words, "--out", rows, "--force") == 2
        assert "is the file to read; name another" in capsys.readouterr().err
        assert run(*words, "--out", tmp_path / "other") == 0
    finally:
        os.dup2(keep, 0)
        os.close(keep)
    assert rows.read_bytes() == (made / "s.csv").read_bytes()


def test_a_folder_where_nobody_may_write_is_told_at_once(made, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("setpoint._files.os.access", lambda place, mode: place != tmp_path)
    train = ("train", made / "s.csv", "--label", "y", "--goal", "fpr <= 0.2")
    for words in (commands(made)["decide"], train):
        assert run(*words, "--out", tmp_path / "out") == 2
        assert f"you may not write into the folder {tmp_path}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_replaces_a_file_has_its_permissions(made, tmp_path):
    out = tmp_path / "out"
    assert run(*commands(made)["decide"], "--out", out) == 0
    out.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(out, 12345, 54321)
    before = out.stat()
    assert run(*commands(made)["decide"], "--out", out, "--force") == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert (out.stat().st_uid, out.stat().st_gid) == (before.st_uid, before.st_gid)
