"""Certificates remember which label was the positive one."""

import json

import numpy as np
import pytest
from cli.shell import run

from setpoint import Certificate

GOAL = ["--goal", "fpr <= 5 %"]
COLUMNS = ["--score", "s", "--label", "y"]


def write(path, seed=0, rows=2000, names=("good", "bad")):
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < 0.3).astype(int)
    scores = random.normal(size=rows) + 2 * labels
    lines = [
        f"{s!r},{names[y]},{i}"
        for i, (s, y) in enumerate(zip(scores.tolist(), labels, strict=True))
    ]
    path.write_text("\n".join(["s,y,day", *lines]) + "\n")
    return path, scores, labels


@pytest.fixture
def certificate(tmp_path, capsys):
    file, *_ = write(tmp_path / "old.csv")
    out = tmp_path / "c.json"
    assert run("certify", file, *COLUMNS, "--positive", "bad", *GOAL, "--out", out) == 0
    capsys.readouterr()
    return out


def test_check_report_watch_and_decide_use_it(certificate, tmp_path, capsys):
    assert Certificate.from_json(certificate.read_text()).label_names == ("good", "bad")
    new, scores, labels = write(tmp_path / "new.csv", seed=1)
    assert run("check", certificate, new, *COLUMNS, "--no-history") == 0
    told = capsys.readouterr().out
    threshold = json.loads(certificate.read_text())["points"][0]["threshold"]
    assert f"{100 * (scores[labels == 0] > threshold).mean():.1f}" in told
    state = ["--time", "day", "--state", tmp_path / "state.json"]
    assert run("watch", certificate, new, *COLUMNS, *state) == 0
    page = tmp_path / "page.html"
    assert run("report", new, *COLUMNS, "--certificate", certificate, "--out", page) == 0
    assert "bad cases" in page.read_text("utf-8")
    out = tmp_path / "decided.csv"
    capsys.readouterr()
    assert run("decide", new, "--score", "s", "--certificate", certificate, "--out", out) == 0
    decided = [line.rsplit(",", 1)[1] for line in out.read_text().splitlines()[1:]]
    assert decided == np.where(scores > threshold, "bad", "good").tolist()


def test_a_file_of_one_class_is_read_by_it(certificate, tmp_path, capsys):
    write(tmp_path / "new.csv", seed=1, names=("good", "good"))
    assert run("check", certificate, tmp_path / "new.csv", *COLUMNS, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["examples"]) == ("broken", 2000)


@pytest.mark.parametrize(
    ("names", "options", "told"),
    [
        (("0", "1"), [], "the certificate knows 'good' and, as positive, 'bad'"),
        (("good", "worse"), [], "the certificate knows 'good' and, as positive, 'bad'"),
        (("good", "bad"), ["--positive", "good"], "leave --positive out"),
    ],
)
def test_labels_that_may_mean_something_else_are_asked_about(
    names, options, told, certificate, tmp_path, capsys
):
    new, *_ = write(tmp_path / "new.csv", seed=1, names=names)
    assert run("check", certificate, new, *COLUMNS, *options) == 2
    assert told in capsys.readouterr().err


def test_other_names_are_read_if_they_are_named_or_plain(certificate, tmp_path, capsys):
    new, *_ = write(tmp_path / "new.csv", seed=1, names=("0", "1"))
    assert run("check", certificate, new, *COLUMNS, "--positive", "1") == 0
    file, *_ = write(tmp_path / "plain.csv", names=("0", "1"))
    out = tmp_path / "plain.json"
    assert run("certify", file, *COLUMNS, *GOAL, "--out", out) == 0
    words, *_ = write(tmp_path / "words.csv", seed=1, names=("no", "yes"))
    assert run("check", out, words, *COLUMNS) == 0


def test_three_ways_outputs_alerts_a_day_and_folders_remember(tmp_path, capsys, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    from setpoint.certificates import streams

    monkeypatch.setattr(streams, "FEWEST_TO_STREAM", 1)
    file, *_ = write(tmp_path / "old.csv", rows=4000)
    table = csv.read_csv(file)
    again = table.append_column("z", table["y"])
    csv.write_csv(again.set_column(2, "day", pa.array(np.arange(4000) // 40)), file)
    (tmp_path / "parts").mkdir()
    parquet.write_table(table, tmp_path / "parts" / "a.parquet")
    per_day = ["--goal", "alerts <= 30 per day on 90 % of days", "--time", "day"]
    out = tmp_path / "c.json"
    for source, columns, goal, more in (
        (file, COLUMNS, ["--accept", "precision >= 0.8", "--reject", "recall >= 0.9"], []),
        (file, [*COLUMNS, "--score", "s", "--label", "z"], GOAL, []),
        (file, COLUMNS, per_day, ["--time", "day"]),
        (tmp_path / "parts", COLUMNS, GOAL, []),
    ):
        asked = [source, *columns, "--positive", "bad", *goal, "--out", out, "--force"]
        assert run("certify", *asked) == 0
        assert json.loads(out.read_text())["label_names"] == ["good", "bad"]
        assert run("check", out, source, *columns, *more, "--no-history") == 0


def test_a_plan_of_labels_remembers(tmp_path, capsys):
    file, _, labels = write(tmp_path / "old.csv", rows=4000)
    plan, out = tmp_path / "to_label.csv", tmp_path / "c.json"
    assert run("plan", file, "--score", "s", *GOAL, "--budget", 1500, "--out", plan) == 0
    head, *rows = plan.read_text().splitlines()
    at = head.split(",").index("plan_row")
    filled = [row + ("bad" if labels[int(row.split(",")[at])] else "good") for row in rows]
    plan.write_text("\n".join([head, *filled]) + "\n")
    given = ["--plan", f"{plan}.plan.json", "--labels", plan, "--positive", "bad"]
    assert run("certify", file, "--score", "s", *given, *GOAL, "--out", out) in (0, 1)
    assert json.loads(out.read_text())["label_names"] == ["good", "bad"]
