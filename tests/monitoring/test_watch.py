"""``setpoint watch`` as cron runs it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli.shell import run

from setpoint import Monitor
from setpoint.certificates import certify
from setpoint.monitoring import JointMonitor


def rows(n, seed, shift=0.0):
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.2
    return random.normal(size=n) + 2 * labels + shift, labels.astype(int)


def write(path, n=400, seed=0, shift=0.0, day=1, known=None):
    """Columns s, y (empty where not known), t, id, g."""
    scores, labels = rows(n, seed, shift)
    lines = ["s,y,t,id,g"]
    for i in range(n):
        label = labels[i] if known is None or known[i] else ""
        moment = f"2024-05-{day:02d}T{i * 23 // n:02d}:00:00"
        lines.append(f"{float(scores[i])!r},{label},{moment},r{seed}-{i},{'ab'[i % 2]}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def place(tmp_path):
    certificate = certify(*rows(5000, 999), "fpr <= 0.05")
    (tmp_path / "c.json").write_text(certificate.to_json())
    return tmp_path


def watch(place, file, *more):
    words = ("--score", "s", "--label", "y", "--time", "t", "--state", place / "state.json")
    return run("watch", place / "c.json", file, *words, *more)


def state(place):
    return Monitor.from_json((place / "state.json").read_text())


def test_force_without_out_and_the_folder_of_a_run_are_taken(place, capsys):
    file = write(place / "1.csv")
    assert watch(place, file) == 0
    assert watch(place, write(place / "2.csv", seed=2, day=2), "--force") == 0
    folder = place / "run"
    folder.mkdir()
    (folder / "certificate.json").write_text((place / "c.json").read_text())
    words = ("--score", "s", "--label", "y", "--time", "t", "--state", place / "state.json")
    assert run("watch", folder, write(place / "3.csv", seed=3, day=3), *words) == 0
    assert "1,200 rows" in capsys.readouterr().out
    assert run("watch", folder, file, "--label", "y", "--state", place / "state.json") == 2
    assert "`setpoint predict` writes the scores of a run" in capsys.readouterr().err


def test_no_rows_yet_are_no_reference(place):
    told = str(Monitor.from_json(certify(*rows(500, 9), "fpr <= 0.1").monitor().to_json()))
    assert "The first rows will be kept as the reference" in told


def test_labels_that_do_not_count_yet_are_told(place, capsys):
    scores = write(place / "1.csv")
    words = (place / "c.json", scores, "--state", place / "s.json", "--id", "id")
    assert run("watch", *words, "--score", "s", "--time", "t") == 0
    assert "no labels yet" in capsys.readouterr().out
    some = write(place / "2.csv", known=np.arange(400) % 2 == 0)
    assert run("watch", words[0], some, *words[2:], "--label", "y", "--page", place / "p.html") == 0
    said = "200 labels on hold until all of their block, or some of newer rows, have come"
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in (place / "p.html").read_text()
    assert run("watch", words[0], scores, *words[2:], "--label", "y") == 0
    assert "on hold" not in capsys.readouterr().out


def test_it_holds_then_breaks_and_says_since_when(place, capsys):
    for day in range(1, 6):
        assert watch(place, write(place / f"{day}.csv", seed=day, day=day)) == 0
    assert "holds (fpr <= 0.05; 2,000 rows)" in capsys.readouterr().out
    codes = [
        watch(place, write(place / f"{d}.csv", seed=d, shift=0.7, day=d)) for d in range(6, 12)
    ]
    assert codes[-1] == 1
    assert "broken since 2024-05-06: fpr" in capsys.readouterr().out
    assert state(place).rows == 11 * 400


def test_the_same_file_counts_once(place, capsys):
    first = write(place / "a.csv", seed=1)
    watch(place, first)
    (place / "copy.csv").write_bytes(first.read_bytes())
    before = (place / "state.json").read_bytes()
    assert watch(place, place / "copy.csv") == 0
    assert "was counted before" in capsys.readouterr().err
    assert (place / "state.json").read_bytes() == before


def test_json_and_page(place, capsys):
    page = place / "watch.html"
    assert watch(place, write(place / "a.csv", seed=1), "--page", page, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "holds"
    assert told["counted"] == 400
    assert set(told["tests"]) == {"fpr <= 0.05", "alerts", "scores"}
    assert "<title>✓ Holds: fpr ≤ 0.05</title>" in page.read_text()
    other = place / "mine.html"
    other.write_text("my own")
    file = write(place / "b.csv", seed=2, day=2)
    assert watch(place, file, "--page", other) == 2
    assert other.read_text() == "my own"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("nan,1,2024-05-02,x,a", "column 's': the value is missing"),
        ("abc,1,2024-05-02,x,a", "'abc' is not a number"),
        ("0.5,7,2024-05-02,x,a", "a label column has two different values"),
        ("0.5,1,,x,a", "the time is missing"),
        ("0.5,1,soon,x,a", "column 't' has 'soon' in row 400"),
        ("0.5,1,2024-04-01,x,a", "The clock goes back"),
    ],
)
def test_bad_input_is_2_and_counts_nothing(place, capsys, change, message):
    watch(place, write(place / "a.csv", seed=1))
    before = (place / "state.json").read_bytes()
    file = write(place / "b.csv", seed=2, day=2)
    file.write_text(file.read_text() + change + "\n")
    assert watch(place, file) == 2
    assert message in capsys.readouterr().err
    assert (place / "state.json").read_bytes() == before
    assert not list(place.glob(".state.json*"))  # no lock, no draft


def test_a_state_of_another_certificate_and_a_damaged_one_are_refused(place, capsys):
    file = write(place / "a.csv", seed=1)
    watch(place, file)
    other = certify(*rows(5000, 5), "fpr <= 0.1")
    (place / "other.json").write_text(other.to_json())
    words = ("--score", "s", "--state", place / "state.json")
    assert run("watch", place / "other.json", file, *words) == 2
    assert "watches another certificate" in capsys.readouterr().err
    text = (place / "state.json").read_text()
    (place / "state.json").write_text(text.replace('"rows": 400', '"rows": 401', 1))
    assert watch(place, write(place / "b.csv", seed=2, day=2)) == 2
    assert "checksum does not fit" in capsys.readouterr().err


def test_an_empty_state_and_a_folder_that_is_not_there_are_refused(place, capsys):
    file = write(place / "a.csv", seed=1)
    (place / "state.json").touch()
    assert watch(place, file) == 2
    assert "state.json: This is no state of a monitor: it is not JSON" in capsys.readouterr().err
    words = ("--score", "s", "--state", place / "typo" / "state.json")
    assert run("watch", place / "c.json", file, *words) == 2
    assert "typo does not exist; make it first" in capsys.readouterr().err
    assert not (place / "typo").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a.csv",), "name a file of new rows and --state"),
        (("a.csv", "--state", "s.json"), "--score is missing"),
        (("--replay", "a.csv"), "--replay needs --score and --time"),
        (("a.csv", "--state", "s.json", "--score", "s", "--recalibrate"), "needs --score"),
        (("a.csv", "--state", "s.json", "--score", "z"), "there is no column 'z'"),
    ],
)
def test_wrong_usage_is_told(place, capsys, monkeypatch, words, message):
    monkeypatch.chdir(place)
    write(place / "a.csv", seed=1)
    assert run("watch", "c.json", *words) == 2
    assert message in capsys.readouterr().err


def test_one_file_is_not_two_outputs(place, capsys):
    page = place / "state.json"
    assert watch(place, write(place / "1.csv"), "--page", page) == 2
    assert "files of their own" in capsys.readouterr().err
    assert not page.exists()


def test_labels_come_later_by_id(place, capsys):
    words = ("--state", place / "state.json", "--id", "id")
    file = write(place / "a.csv", 2000, seed=1, shift=0.7)
    assert run("watch", place / "c.json", file, "--score", "s", *words) in (0, 1)
    assert run("watch", place / "c.json", file, "--label", "y", *words) == 1
    assert "broken since update 1: fpr" in capsys.readouterr().out


def test_labels_of_alerts_alone_are_refused_for_fpr(place, capsys):
    known = rows(400, 1)[0] > 1.5
    watch(place, write(place / "a.csv", seed=1, known=known))
    assert "`fpr <= 0.05` is not tested" in capsys.readouterr().out


def test_replay_says_what_it_would_have_said(place, capsys):
    parts = [write(place / "x.csv", 400, d, 0.7 * (d > 3), d).read_text() for d in range(1, 10)]
    header = parts[0].splitlines()[0]
    lines = [line for part in parts for line in part.splitlines()[1:]]
    np.random.default_rng(0).shuffle(lines)  # the order of the file does not matter
    everything = place / "all.csv"
    everything.write_text("\n".join([header, *lines]) + "\n")
    words = ("--replay", everything, "--score", "s", "--label", "y", "--time", "t", "--by", "day")
    assert run("watch", place / "c.json", *words, "--page", place / "w.html") == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 9
    assert said[0].startswith("2024-05-01         400 rows  holds")
    assert "broken since 2024-05-04" in said[-1]
    assert not (place / "state.json").exists()


def test_recalibration_writes_a_new_certificate_and_the_state_follows(place, capsys):
    for day in range(1, 5):
        watch(place, write(place / f"{day}.csv", 800, seed=day, shift=0.7, day=day))
    new = place / "new.json"
    file = write(place / "later.csv", 4000, seed=9, shift=0.7, day=9)
    assert watch(place, file, "--recalibrate", "--out", new) == 0
    assert "certified with 97.5 % confidence" in capsys.readouterr().err
    assert state(place).status == "holds"
    (place / "c.json").write_text(new.read_text())
    assert watch(place, write(place / "n.csv", 800, seed=10, shift=0.7, day=10)) == 0


COUNT_AND_WAIT = """
import os, sys
from setpoint import _files, cli
from setpoint.cli import watch
kept = _files.replacing
if sys.argv[1] == "before":
    def stop(*given, **how):
        print("ready", flush=True)
        import time; time.sleep(60)
    watch.write_files = stop
else:
    def half(files, force):
        ((path, content),) = files.items()
        with kept(path, force=True) as file:
            file.write(content[: len(content) // 2])
            file.flush()
            print("ready", flush=True)
            import time; time.sleep(60)
    watch.write_files = half
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "while"])
def test_kill_9_loses_nothing_and_counts_nothing_twice(place, moment):
    watch(place, write(place / "a.csv", seed=1))
    before = (place / "state.json").read_bytes()
    file = write(place / "b.csv", seed=2, day=2)
    words = ["watch", "c.json", str(file), "--score", "s", "--label", "y", "--time", "t"]
    program = [sys.executable, "-c", COUNT_AND_WAIT, moment, *words, "--state", "state.json"]
    process = subprocess.Popen(program, cwd=place, stdout=subprocess.PIPE, env=dict(os.environ))
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (place / "state.json").read_bytes() == before
    assert watch(place, file) == 0  # the lock of the dead is free
    assert state(place).rows == 800
    assert watch(place, file) == 0
    assert state(place).rows == 800
    assert not list(place.glob(".state.json*draft"))


def killed_before(operation, place, file):
    """Count a file in a process that is killed before an operation on files; its wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    seen = 0

    def hook(event, given):
        nonlocal seen
        if event in ("open", "os.rename", "os.remove", "fcntl.flock", "os.truncate"):
            seen += str(place) in str(given[0]) or event == "fcntl.flock"
            if seen == operation:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    os._exit(watch(place, file, "--page", place / "watch.html"))


def test_killed_before_any_operation_on_files_a_file_counts_once(place):
    first, second = (write(place / f"{day}.csv", seed=day, day=day) for day in (1, 2))
    watch(place, first)
    kept = (place / "state.json").read_bytes()
    watch(place, second)
    whole = (place / "state.json").read_bytes()
    found = []
    for operation in range(1, 60):
        (place / "state.json").write_bytes(kept)
        status = killed_before(operation, place, second)
        now = (place / "state.json").read_bytes()
        assert now in (kept, whole)
        assert watch(place, second) == 0
        assert (place / "state.json").read_bytes() == whole  # once, and nothing is lost
        assert not list(place.glob(".state.json*draft"))
        found.append((status, now == whole))
        if status == 0:
            break
    assert found[-1] == (0, True)
    assert {status for status, _ in found[:-1]} == {signal.SIGKILL}
    assert len(found) > 8
    assert {counted for _, counted in found[:-1]} == {False, True}  # before the state, and after


@pytest.mark.slow
def test_runs_at_the_same_time_wait_for_each_other(place):
    files = [write(place / f"{i}.csv", 300, seed=i, day=1) for i in range(6)]
    code = "import sys; from setpoint import cli; sys.exit(cli.main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "watch", "c.json"]
    more = ["--score", "s", "--label", "y", "--state", "state.json"]
    running = [subprocess.Popen([*words, f.name, *more], cwd=place) for f in files]
    assert [process.wait(120) for process in running] == [0] * 6
    assert state(place).rows == 6 * 300
    assert len(state(place).files) == 6


def test_a_run_that_waits_too_long_says_who_has_the_state(place, capsys, monkeypatch):
    from setpoint._files import only_one
    from setpoint.cli import watch as command

    monkeypatch.setattr(command, "_LOCK_PATIENCE", 0.2)
    file = write(place / "a.csv", seed=1)
    began = time.monotonic()
    with only_one(place / "state.json"):
        assert watch(place, file) == 2
    assert time.monotonic() - began < 20
    assert f"is being written by process {os.getpid()}" in capsys.readouterr().err


def test_a_file_that_has_grown_counts_its_new_rows_alone(place, capsys):
    file = write(place / "today.csv", n=300, seed=1)
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:101]) + "\n")
    watch(place, file)
    file.write_text("\n".join(lines) + "\n")
    assert watch(place, file) == 0
    assert "has grown: 100 rows were counted before, 200 new rows now" in capsys.readouterr().err
    assert state(place).rows == 300
    assert watch(place, file) == 0
    assert "was counted before" in capsys.readouterr().err
    assert state(place).rows == 300
    filled = place / "with labels.csv"  # the same rows once more, some labels taken out
    filled.write_text("\n".join([lines[0], *(x.replace(",0,", ",,") for x in lines[1:])]) + "\n")
    watch(place, filled)
    assert "come with --id and --label, without --score" in capsys.readouterr().err
    assert state(place).rows == 300


def test_files_put_together_and_pieces_of_a_grown_file_count_once(place):
    days = [write(place / f"{d}.csv", n=100, seed=d, day=d) for d in range(1, 5)]
    head, *_ = (lines := [day.read_text().splitlines() for day in days])[0]
    for day in days[:2]:
        watch(place, day)
    month = place / "month.csv"  # two files that were counted, and a third, newest first
    month.write_text("\n".join([head, *(x for day in lines[2::-1] for x in day[1:])]) + "\n")
    watch(place, month)
    assert state(place).rows == 300
    watch(place, days[2])
    assert state(place).rows == 300
    assert watch(place, days[3]) == 0
    assert state(place).rows == 400


def test_small_files_that_are_alike_by_chance_are_other_files(place):
    words = ("--score", "s", "--state", place / "state.json")
    for name in ("1.csv", "2.csv", "2.csv"):  # no alert in an hour
        (place / name).write_text("\n".join(["s", *["0"] * 30]) + "\n")
        run("watch", place / "c.json", place / name, *words)
    assert state(place).rows == 60


def test_rows_that_recalibrated_are_not_counted_as_new_ones(place, capsys):
    watch(place, write(place / "a.csv", seed=1))
    rows_of_today = write(place / "b.csv", n=3000, seed=2, day=2)
    watch(place, rows_of_today, "--recalibrate", "--out", place / "new.json")
    words = ("--score", "s", "--label", "y", "--time", "t", "--state", place / "state.json")
    assert run("watch", place / "new.json", rows_of_today, *words) == 0
    assert "was counted before" in capsys.readouterr().err
    assert state(place).rows == 400


def test_a_page_that_cannot_be_written_counts_nothing(place, capsys):
    file = write(place / "a.csv", seed=1)
    assert watch(place, file, "--page", place / "nowhere" / "watch.html") == 2
    assert "does not exist" in capsys.readouterr().err
    assert watch(place, file, "--page", file) == 2
    assert f"--page {file} is the file to read" in capsys.readouterr().err
    assert not (place / "state.json").exists()


@pytest.mark.parametrize(
    "words",
    [("--false-alarm", "0.01"), ("--watch", "rates"), ("--by", "week"), ("--features", "s")],
)
def test_settings_of_a_new_state_are_refused_for_an_old_one(place, capsys, words):
    watch(place, write(place / "a.csv", seed=1))
    before = (place / "state.json").read_bytes()
    assert watch(place, write(place / "b.csv", seed=2, day=2), *words) == 2
    assert f"{words[0]} is for a new state" in capsys.readouterr().err
    assert (place / "state.json").read_bytes() == before
    same = ("--false-alarm", "0.05", "--watch", "rates,alerts,scores", "--by", "day")
    assert watch(place, place / "b.csv", *same) == 0


def test_costs_by_amounts_from_a_file(tmp_path, capsys):
    scores, labels = rows(6000, 1)
    amounts = np.random.default_rng(1).exponential(20, 6000).clip(0, 100)
    goal = "cost(miss=1, false_alarm=2) <= 1.4"
    certificate = certify(scores, labels, goal, amounts=amounts, largest_amount=100)
    (tmp_path / "c.json").write_text(certificate.to_json())
    scores, labels = rows(6000, 2)
    lines = [f"{s - 1.5 * y},{y},{a}" for s, y, a in zip(scores, labels, amounts, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["s,y,a", *lines]) + "\n")
    words = ("--score", "s", "--label", "y", "--state", tmp_path / "state.json")
    assert run("watch", tmp_path / "c.json", tmp_path / "a.csv", *words) == 2
    assert "pass --amounts." in capsys.readouterr().err
    assert run("watch", tmp_path / "c.json", tmp_path / "a.csv", *words, "--amount", "a") == 1
    assert "broken since update 1: cost" in capsys.readouterr().out


def test_labels_that_come_before_their_rows_are_joined_when_given_again(place, capsys):
    words = ("--state", place / "state.json", "--id", "id")
    file = write(place / "a.csv", 2000, seed=1, shift=0.7)
    assert run("watch", place / "c.json", file, "--label", "y", *words) == 0
    assert "2,000 of 2,000 labels" in capsys.readouterr().err
    run("watch", place / "c.json", file, "--score", "s", *words)
    assert run("watch", place / "c.json", file, "--label", "y", *words) == 1
    assert "broken since update 1: fpr" in capsys.readouterr().out
    whole = (place / "state.json").read_bytes()
    assert run("watch", place / "c.json", file, "--label", "y", *words) == 1
    assert "they were joined before" in capsys.readouterr().err
    assert (place / "state.json").read_bytes() == whole


def test_one_number_is_a_share_of_labels_for_all_rows(place, capsys):
    known = np.random.default_rng(0).random(4000) < 0.3
    file = write(place / "a.csv", 4000, seed=1, known=known)
    lines = file.read_text().splitlines()
    lines = [f"{line},{'w' if i == 0 else 0.3}" for i, line in enumerate(lines)]
    (place / "column.csv").write_text("\n".join(lines) + "\n")
    words = ("--score", "s", "--label", "y")
    for name, weight in (("a.csv", "0.3"), ("column.csv", "w")):
        state_file = place / f"{name}.json"
        given = (*words, "--label-weight", weight, "--state", state_file)
        assert run("watch", place / "c.json", place / name, *given) == 0
    rates = [
        Monitor.from_json((place / f"{n}.json").read_text()).rates[0]
        for n in ("a.csv", "column.csv")
    ]
    assert rates[0].state() == rates[1].state()
    assert rates[0].relevant > known.sum()  # each label stands for more than one row
    capsys.readouterr()
    for wrong in ("0", "1.5", "-0.1", "nan"):
        given = (*words, "--label-weight", wrong, "--state", place / "no.json")
        assert run("watch", place / "c.json", file, *given) == 2
        assert f"there is no column '{wrong}'" in capsys.readouterr().err


def test_features_may_have_empty_cells_and_are_numbers(place, capsys):
    words = ("--score", "s", "--state", place / "state.json", "--features")
    lines = write(place / "a.csv", 1500, seed=1).read_text().splitlines()
    random = np.random.default_rng(0)
    ages = ["age", *(f"{x:.3f}" if x > -1 else "" for x in random.normal(size=1500))]
    file = place / "f.csv"
    file.write_text("\n".join(map(",".join, zip(lines, ages, strict=True))) + "\n")
    assert run("watch", place / "c.json", file, *words, "age") == 0
    watched = state(place).features["age"]
    assert watched.urn.counts.sum() == 500  # missing values have a rank, too
    assert (
        run("watch", place / "c.json", file, *words[:2], "--state", place / "o", "--features", "g")
        == 2
    )
    assert "'a' is not a number; --features are columns of numbers" in capsys.readouterr().err


def test_several_outputs_are_watched_from_columns_of_their_own(tmp_path, capsys):
    def file(name, seeds, shift=0.0):
        both = [rows(4000, seed, shift * (i == 1)) for i, seed in enumerate(seeds)]
        columns = np.column_stack([each for pair in both for each in pair])
        lines = [
            f"{a},{int(y)},{b},{int(z) if i % 3 else ''}" for i, (a, y, b, z) in enumerate(columns)
        ]
        (tmp_path / name).write_text("\n".join(["a,ya,b,yb", *lines]) + "\n")
        return tmp_path / name

    words = ("--score", "a", "--label", "ya", "--score", "b", "--label", "yb")
    promise = ("--goal", "fpr <= 0.05", "--out", tmp_path / "c.json")
    assert run("certify", file("cal.csv", (3, 4)), *words, *promise) == 0
    more = (*words, "--state", tmp_path / "state.json")
    first, page = file("a.csv", (5, 6)), ("--page", tmp_path / "watch.html")
    assert run("watch", tmp_path / "c.json", first, *more, *page) == 0
    assert run("watch", tmp_path / "c.json", first, *more) == 0
    assert "was counted before" in capsys.readouterr().err
    monitor = state(tmp_path)
    assert monitor.rows == 4000
    scores = np.column_stack([rows(4000, seed)[0] for seed in (5, 6)])
    labels = np.column_stack([rows(4000, seed)[1] for seed in (5, 6)]).astype(float)
    labels[::3, 1] = np.nan
    alone = monitor.certificate.monitor()
    alone.update(scores, labels)
    assert [test.state() for test in alone.rates] == [test.state() for test in monitor.rates]
    bad = file("b.csv", (7, 8), shift=0.7)
    assert run("watch", tmp_path / "c.json", bad, *more) == 1
    assert 'broken since update 2: fpr on output="yb"' in capsys.readouterr().out
    new = tmp_path / "new.json"
    assert run("watch", tmp_path / "c.json", bad, *more, "--recalibrate", "--out", new) == 0
    assert run("watch", new, file("d.csv", (9, 10), shift=0.7), *more) == 0
    for wrong, told in (
        (words[:4], "is about 2 outputs, ya, yb: add --score for each"),
        ((*words, "--features", "a"), "--confidence 0.975, and watch it with --false-alarm 0.025"),
    ):
        given = (bad, *wrong, "--state", tmp_path / "other.json")
        assert run("watch", tmp_path / "c.json", *given) == 2
        assert told in capsys.readouterr().err


def test_three_ways_are_watched_by_both_sides(tmp_path, capsys):
    def file(name, seed, shift=0.0, day=1):
        scores, labels = rows(4000, seed)
        lines = [f"{s + (2 - shift) * y},{y},2024-05-{day:02d},{seed}-{i}"
                 for i, (s, y) in enumerate(zip(scores, labels, strict=True))]  # fmt: skip
        (tmp_path / name).write_text("\n".join(["s,y,t,id", *lines]) + "\n")
        return tmp_path / name

    words, columns = ("--score", "s", "--label", "y"), ("--time", "t", "--id", "id")
    sides = ("--accept", "precision >= 0.97", "--reject", "npv >= 0.97")
    assert run("certify", file("cal.csv", 0), *words, *sides, "--out", tmp_path / "c.json") == 0
    more = (*words, *columns, "--state", tmp_path / "state.json")
    first = file("1.csv", 1)
    for _ in range(2):
        assert run("watch", tmp_path / "c.json", first, *more, "--json") == 0
    told = json.loads(capsys.readouterr().out.split("}\n{")[-1].join(["{", ""]))
    assert (told["rows"], told["counted"], told["false_alarm"]) == (4000, 0, 0.05)
    assert set(told["parts"]["accept"]["tests"]) == {"precision >= 0.97", "alerts", "scores"}
    piece = first.read_text().splitlines()
    (tmp_path / "piece.csv").write_text("\n".join([piece[0], *piece[99:999]]) + "\n")
    run("watch", tmp_path / "c.json", tmp_path / "piece.csv", *more)
    assert "900 rows of" in capsys.readouterr().err
    assert run("watch", tmp_path / "c.json", file("2.csv", 2, 2.5, day=2), *more) == 1
    told = capsys.readouterr().out
    assert "reject: broken since 2024-05-02: npv" in told
    state_of = JointMonitor.from_json((tmp_path / "state.json").read_text())
    assert state_of.rows == 8000
    assert run("watch", tmp_path / "c.json", "--replay", tmp_path / "2.csv", *words, *columns) == 1
    other = (*sides[:3], "npv >= 0.96")
    run("certify", tmp_path / "cal.csv", *words, *other, "--out", tmp_path / "o.json")
    assert run("watch", tmp_path / "o.json", first, *more) == 2
    assert "watches another certificate" in capsys.readouterr().err
    assert run("watch", tmp_path / "c.json", first, *more, "--page", tmp_path / "w.html") == 2
    assert "--page goes with one threshold" in capsys.readouterr().err


def test_a_capacity_is_watched_from_a_file(tmp_path, capsys):
    def days(name, first, count, shift=0.0):
        scores, _ = rows(40 * count, count, shift)
        dates = np.datetime64(first) + np.arange(40 * count) // 40
        lines = [f"{s},{t}" for s, t in zip(scores, dates, strict=True)]
        (tmp_path / name).write_text("\n".join(["s,t", *lines]) + "\n")
        return scores, dates

    scores, dates = days("cal.csv", "2024-01-01", 200)
    goal = "alerts <= 8 per day on 95 % of days"
    certificate = certify(scores, None, goal, times=dates)
    (tmp_path / "c.json").write_text(certificate.to_json())
    days("good.csv", "2025-01-01", 30)
    days("bad.csv", "2025-03-01", 31, 0.8)
    words = ("--score", "s", "--state", tmp_path / "state.json")
    assert run("watch", tmp_path / "c.json", tmp_path / "good.csv", *words) == 2
    assert "goes by time" in capsys.readouterr().err
    words = (*words, "--time", "t")
    assert run("watch", tmp_path / "c.json", tmp_path / "good.csv", *words) == 0
    assert run("watch", tmp_path / "c.json", tmp_path / "bad.csv", *words) == 1
    assert "days with more than 8 alerts" in capsys.readouterr().out


def test_the_same_rows_in_another_order_or_with_other_options_count_once(place, capsys):
    file = write(place / "a.csv")
    watch(place, file)
    lines = file.read_text().splitlines()
    (place / "b.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    words = ("--score", "s", "--state", place / "state.json")
    for again, more in ((place / "b.csv", ("--time", "t")), (file, ()), (file, ("--id", "id"))):
        run("watch", place / "c.json", again, *words, *more)
        assert "was counted before" in capsys.readouterr().err
        assert state(place).rows == 400


def test_few_different_scores_are_another_file_in_another_order(place):
    for name, scores in (("a", [1, 2, 1, 2, 2, 1, 1, 1]), ("b", [2, 2, 2, 1, 1, 1, 1, 1])):
        (place / f"{name}.csv").write_text("\n".join(["s", *map(str, scores)]) + "\n")
        words = ("--score", "s", "--state", place / "state.json")
        run("watch", place / "c.json", place / f"{name}.csv", *words)
    assert state(place).rows == 16


def test_empty_texts_are_missing_labels_in_parquet_files_too(place):
    pandas = pytest.importorskip("pandas")
    scores, labels = rows(300, 1)
    given = [str(label) if i % 3 else "" for i, label in enumerate(labels)]
    frame = pandas.DataFrame({"s": scores, "y": given})
    frame.to_parquet(place / "a.parquet")
    frame.to_csv(place / "a.csv", index=False)
    found = []
    for name in ("a.parquet", "a.csv"):
        words = ("--score", "s", "--label", "y", "--state", place / f"{name}.json")
        assert run("watch", place / "c.json", place / name, *words) == 0
        found.append(Monitor.from_json((place / f"{name}.json").read_text()).rates[0].relevant)
    assert found[0] == found[1] > 0


def test_rows_with_ids_count_once_wherever_they_stand(place, capsys):
    day = write(place / "1.csv", seed=1, day=1)
    lines = day.read_text().splitlines()
    watch(place, day, "--id", "id")
    piece = place / "piece.csv"  # rows out of the middle, and some that are new
    more = write(place / "2.csv", seed=2, day=2).read_text().splitlines()[1:]
    piece.write_text("\n".join([lines[0], *lines[120:180], *more[:50]]) + "\n")
    capsys.readouterr()
    assert watch(place, piece, "--id", "id") == 0
    assert "60 rows of" in (told := capsys.readouterr().err)
    assert "were counted before, by --id: left out" in told
    assert state(place).rows == 450
    piece.write_text("\n".join([lines[0], *lines[120:180]]) + "\n")
    before = state(place)
    assert watch(place, piece, "--id", "id") == 0
    assert (state(place).rows, state(place).updates) == (before.rows, before.updates)
    waiting = ("--score", "s", "--id", "id", "--state", place / "late.json")  # without labels
    for file in (day, piece):
        assert run("watch", place / "c.json", file, *waiting) == 0
    assert Monitor.from_json((place / "late.json").read_text()).rows == 400


def test_rows_that_recalibrate_in_vain_are_not_lost(place, capsys):
    watch(place, write(place / "a.csv", seed=1), "--id", "id")
    few = write(place / "b.csv", n=30, seed=2, day=2)
    assert watch(place, few, "--id", "id", "--recalibrate", "--out", place / "no.json") == 0
    assert "The state keeps the old certificate" in capsys.readouterr().err
    watch(place, few, "--id", "id")
    assert state(place).rows == 430
    later = write(place / "c.csv", n=4000, seed=3, day=3)
    watch(place, later, "--id", "id", "--recalibrate", "--out", place / "new.json")
    (place / "c.json").write_text((place / "new.json").read_text())
    piece = place / "piece.csv"
    lines = later.read_text().splitlines()
    piece.write_text("\n".join([lines[0], *lines[2000:2100]]) + "\n")
    watch(place, piece, "--id", "id")
    assert state(place).rows == 430


def test_dates_of_a_day_are_read_like_those_of_the_whole_file(place, capsys):
    """The third of April, as others write it: told by the other days, or by an option."""
    scores, labels = rows(300, 3)
    days = [f"{1 + i // 10:02d}/04/2024" for i in range(300)]
    lines = [f"{s!r},{y},{t}" for s, y, t in zip(scores.tolist(), labels, days, strict=True)]
    (place / "all.csv").write_text("\n".join(["s,y,t", *lines]))
    words = ("--score", "s", "--label", "y", "--time", "t")
    assert run("watch", place / "c.json", "--replay", place / "all.csv", *words) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in (told[0], told[-1])] == ["2024-04-01", "2024-04-30"]
    (place / "day.csv").write_text("\n".join(["s,y,t", *lines[20:30]]))
    assert watch(place, place / "day.csv") == 2
    assert "may be day/month or month/day: all are like 03/04/2024" in capsys.readouterr().err
    assert watch(place, place / "day.csv", "--dates", "day/month") == 0
    assert state(place).latest == "2024-04-03"


def test_a_replay_of_seconds_is_one_of_days_and_too_many_periods_are_refused(
    place, capsys, monkeypatch
):
    scores, labels = rows(300, 3)
    first = int(np.datetime64("2024-03-01T00:00:00").astype(int))
    lines = [
        f"{s!r},{y},{(first + i * 3600) * 1000}"
        for i, (s, y) in enumerate(zip(scores.tolist(), labels, strict=True))
    ]
    (place / "all.csv").write_text("\n".join(["s,y,t", *lines]))
    words = ("--score", "s", "--label", "y", "--time", "t")
    assert run("watch", place / "c.json", "--replay", place / "all.csv", *words) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 13
    assert told[0].split()[:2] == ["2024-03-01", "24"]
    monkeypatch.setattr("setpoint.cli.watch._MOST_REPLAYED", 100)
    again = ("--replay", place / "all.csv", *words, "--by", "hour")
    assert run("watch", place / "c.json", *again) == 2
    assert "up to 100 periods one by one; column 't' has 300 of them" in capsys.readouterr().err
