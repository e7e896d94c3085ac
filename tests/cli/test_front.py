import json

import numpy as np
import pytest
from cli.shell import run

from setpoint.pareto import Front


def write_people(path, rows=600, seed=0, groups="fm", fair=False):
    """Income depends on age and on hours, and hours on the group."""
    rng = np.random.default_rng(seed)
    lines = ["age,hours,sex,rich"]
    for _ in range(rows):
        group = rng.integers(len(groups))
        hours = rng.normal(40 + (0 if fair else 6 * group), 4)
        age = rng.normal(45, 12)
        rich = rng.random() < 1 / (1 + np.exp(-((hours - 43) / 3 + (age - 45) / 20)))
        lines.append(f"{age:.1f},{hours:.1f},{groups[group]},{'yes' if rich else 'no'}")
    path.write_text("\n".join(lines) + "\n")
    return path


def front(data, out, *more):
    options = ("--label", "rich", "--group", "sex", "--points", 4, "--steps", 80, "--out", out)
    return run("front", data, *options, *more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("front")
    data = write_people(folder / "people.csv")
    assert front(data, folder / "out") == 0
    return folder


def test_a_front_has_numbers_weights_and_a_picture_and_no_pickle(made):
    files = {
        p.relative_to(made / "out").as_posix() for p in (made / "out").rglob("*") if p.is_file()
    }
    weights = {f"point-00{place}/checkpoint.safetensors" for place in range(4)}
    assert files == weights | {"front.json", "columns.json", "front.png"}
    described = json.loads((made / "out" / "columns.json").read_text())
    assert (described["positive"], described["groups"]) == ("yes", ["f", "m"])
    assert [column["name"] for column in described["columns"]] == ["age", "hours"]  # sex is unseen


def test_fairness_costs_loss_evenly_from_point_to_point(made):
    found = Front.load(made / "out")
    assert found.names == ("loss", "coverage_gap")
    first, last = found.points[0], found.points[-1]
    assert first.held < 0.02 < 0.1 < last.held
    assert first.minimized > last.minimized + 0.02
    assert max(abs(gap) for gap in found.gaps[1:-1]) < 0.01
    assert found.unevenness < 0.1
    assert last.measures["accuracy"] > 0.7
    assert first.measures["coverage gap"] < last.measures["coverage gap"]


def test_the_table_is_printed_and_a_second_run_only_reads(made, capsys):
    before = {path: path.stat().st_mtime_ns for path in (made / "out").glob("point-*/*")}
    assert front(made / "people.csv", made / "out") == 0
    out, error = capsys.readouterr()
    assert "600 rows" in error
    assert out.splitlines()[0].split()[:3] == ["place", "loss", "coverage_gap"]
    assert "impact ratio" in out
    assert "Written to" in out
    assert {path: path.stat().st_mtime_ns for path in (made / "out").glob("point-*/*")} == before


def test_other_goals_and_a_network(made, tmp_path, capsys):
    goals = ("--minimize", "tpr_gap", "--hold", "loss", "--model", "mlp", "--quiet")
    assert front(made / "people.csv", tmp_path / "out", *goals, "--learn-from-group") == 0
    assert capsys.readouterr().err == ""
    assert Front.load(tmp_path / "out").names == ("tpr_gap", "loss")
    described = json.loads((tmp_path / "out" / "columns.json").read_text())
    assert [column["name"] for column in described["columns"]] == ["age", "hours", "sex"]


def test_misses_against_false_alarms_without_groups(made, tmp_path, capsys):
    options = ("--label", "rich", "--points", 3, "--steps", 40, "--quiet")
    assert run("front", made / "people.csv", "--out", tmp_path / "out", *options) == 0
    assert "fnr" in capsys.readouterr().out.splitlines()[0]
    found = Front.load(tmp_path / "out")
    assert found.names == ("misses", "false_alarms")
    rates = [(p.measures["fpr"], p.measures["fnr"]) for p in found.points]
    # 40 steps from a saturated end leave the middle near it: only the ends are told apart
    assert rates[0][0] <= rates[1][0] <= rates[2][0] > rates[0][0]
    assert rates[0][1] >= rates[1][1] >= rates[2][1] < rates[0][1]
    assert (
        run("front", made / "people.csv", "--out", tmp_path / "b", *options, "--hold", "tpr_gap")
        == 2
    )
    assert "tpr_gap is between groups; name their column: --group" in capsys.readouterr().err


def test_the_folder_of_another_front_is_refused(made, capsys):
    assert front(made / "people.csv", made / "out", "--seed", 1) == 2
    error = capsys.readouterr().err
    assert "holds another front" in error
    assert "Use another folder" in error


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--hold", "loss"], "--minimize and --hold are both loss; a front needs two goals"),
        (["--points", "2"], "--points must be at least 3, two ends and one between; got 2"),
        (["--group", "city"], "there is no column 'city' (--group)"),
        (["--hold", "justice"], "invalid choice: 'justice'"),
    ],
)
def test_bad_usage_is_told_in_a_line(made, tmp_path, capsys, more, message):
    assert front(made / "people.csv", tmp_path / "out", *more) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_groups_that_cannot_be_compared_are_told(tmp_path, capsys):
    one = write_people(tmp_path / "one.csv", groups="f")
    assert front(one, tmp_path / "out") == 2
    assert (
        "a group column has two values at least; this one has only 'f'" in capsys.readouterr().err
    )
    few = write_people(tmp_path / "few.csv", rows=60)
    assert front(few, tmp_path / "out") == 2
    assert "10 is the least" in capsys.readouterr().err
    (tmp_path / "file").write_text("mine")
    assert front(few, tmp_path / "file") == 2
    assert "cannot be made a folder" in capsys.readouterr().err
