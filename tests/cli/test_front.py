import json

import pytest
from cli.shell import run, write_data

FAST = ("--points", 3, "--steps", 15, "--batch-size", 200)


def front(folder, *more):
    data = write_data(folder / "data.csv", rows=400)
    return run("front", data, "--label", "churn", "--out", folder / "front", *FAST, *more)


def test_misses_against_false_alarms(tmp_path, capsys):
    assert front(tmp_path) == 0
    out = capsys.readouterr().out
    assert "misses" in out.splitlines()[0]
    assert "front.json" in out
    points = json.loads((tmp_path / "front" / "front.json").read_text())["points"]
    assert len(points) == 3
    alarms, misses = ([p["measures"][name] for p in points] for name in ("fpr", "fnr"))
    assert alarms[0] < alarms[-1]  # the first holds false alarms at their least
    assert misses[0] > misses[-1]


def test_loss_against_unfairness_leaves_the_group_out(tmp_path, capsys):
    assert front(tmp_path, "--group", "sex") == 0
    assert "coverage gap" in capsys.readouterr().out
    found = json.loads((tmp_path / "front" / "front.json").read_text())
    assert found["names"] == ["loss", "unfairness"]
    assert found["points"][0]["held"] <= found["points"][-1]["held"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--points", "2"], "a front has two ends and a middle"),
        (["--group", "city"], "column 'city': a front is between two groups; this column has"),
        (["--label", "gone"], "no column 'gone' (--label)"),
        (["--group", "gone"], "no column 'gone' (--group)"),
    ],
)
def test_mistakes_are_2_and_one_line(tmp_path, capsys, arguments, message):
    assert front(tmp_path, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "front").exists()
