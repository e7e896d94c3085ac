"""Files in which only the alerts have a label: what each command refuses, and what to do."""

import json

import numpy as np
import pytest
from cli.shell import run
from cli.test_related import write

from setpoint import certify
from setpoint.certificates import certify_table, streams
from setpoint.tables import open_table, read_scores

OLD = 1.0
COLUMNS = ("--score", "s", "--label", "y")
GAP = """maximize recall subject to abs(fpr on g="a" - fpr on g="b") <= 0.2 and fpr <= 0.2
with thresholds per group"""


def rows(seed=0, n=6000):
    random = np.random.default_rng(seed)
    labels = (random.random(n) < 0.2).astype(int)
    return random.normal(size=n) + 2.5 * labels, labels, np.array(["a", "b"])[np.arange(n) % 2]


def reviewed(path, seed=0, at=OLD):
    """A csv file in which rows up to ``at`` have no label."""
    scores, labels, groups = rows(seed)
    known = np.where(scores > at, labels.astype(str), "")
    return write(path, s=scores, y=known, g=groups), scores, labels


def everyone(path, goal, **columns):
    """A certificate from rows that all have a label."""
    scores, labels, _ = rows(5)
    file = write(path.with_suffix(".csv"), s=scores, y=labels)
    assert run("certify", file, *COLUMNS, "--goal", goal, "--out", path) == 0
    return json.loads(path.read_text())["points"][0]["threshold"]


@pytest.mark.parametrize(
    "goal", ["recall >= 0.8", "fpr <= 0.05", "cost(miss=9, false_alarm=1) <= 1"]
)
@pytest.mark.parametrize("more", [(), ("--group", "g")])
def test_what_is_rejected_cannot_be_promised(tmp_path, capsys, goal, more):
    file, *_ = reviewed(tmp_path / "scores.csv")
    assert run("certify", file, *COLUMNS, "--goal", goal, *more) == 2
    told = capsys.readouterr().err
    assert "alerts that were reviewed" in told
    assert "setpoint plan --reviewed" in told


def test_both_sides_and_gaps_cannot_be_promised_either(tmp_path, capsys):
    file, *_ = reviewed(tmp_path / "scores.csv")
    sides = ("--accept", "precision >= 0.7", "--reject", "npv >= 0.9")
    assert run("certify", file, *COLUMNS, *sides) == 2
    assert "alerts that were reviewed" in capsys.readouterr().err
    assert run("certify", file, *COLUMNS, "--group", "g", "--goal", GAP) == 2
    assert "alerts that were reviewed" in capsys.readouterr().err


def test_precision_of_alerts_is_that_of_python(tmp_path, capsys):
    file, scores, labels = reviewed(tmp_path / "scores.csv")
    out = tmp_path / "c.json"
    assert run("certify", file, *COLUMNS, "--goal", "precision >= 0.5", "--out", out) == 0
    assert "recall and fpr are unknown" in " ".join(capsys.readouterr().out.split())
    point = json.loads(out.read_text())["points"][0]
    again = certify(scores, np.where(scores > OLD, labels, np.nan), "precision >= 0.5")
    assert point["threshold"] == again.threshold > OLD
    assert (point["examples"], point["alerts"]) == (6000, int((scores > again.threshold).sum()))
    assert run("check", out, file, "--score", "s", "--no-history") == 0
    assert run("check", out, file, *COLUMNS, "--no-history") == 0
    page = tmp_path / "page.html"
    words = ("--certificate", out, *COLUMNS, "--out", page)
    assert run("report", file, *words) == 2
    assert "alerts that were reviewed" in capsys.readouterr().err
    assert not page.exists()


def test_a_check_says_what_was_not_tested(tmp_path, capsys):
    threshold = everyone(tmp_path / "c.json", "recall >= 0.8 and precision >= 0.3")
    file, scores, labels = reviewed(tmp_path / "new.csv", 1, at=threshold - 0.3)
    capsys.readouterr()
    assert run("check", tmp_path / "c.json", file, *COLUMNS) == 1
    told = capsys.readouterr().out
    assert told.startswith("unchecked: ")
    assert "setpoint plan --reviewed" in " ".join(told.split())
    assert "precision >= 0.3  " in told
    assert "ALARM" not in told
    assert run("check", tmp_path / "c.json", file, *COLUMNS, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert [entry["verdict"] for entry in found["history"]] == ["unchecked", "unchecked"]
    seen = {finding["name"]: finding["measured"] for finding in found["findings"]}
    assert seen["alerts"] == pytest.approx((scores > threshold).mean())
    assert seen["precision >= 0.3"] == pytest.approx(labels[scores > threshold].mean())


def test_rows_that_are_read_by_streaming_are_refused_too(tmp_path, capsys, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    scores, labels, groups = rows()
    known = [int(y) if s > OLD else None for s, y in zip(scores, labels, strict=True)]
    parquet.write_table(
        pyarrow.table({"s": scores, "y": known, "g": groups}), tmp_path / "p.parquet"
    )
    monkeypatch.setattr(streams, "FEWEST_TO_STREAM", 1)
    for more in ((), ("--group", "g")):
        words = (tmp_path / "p.parquet", *COLUMNS, *more)
        assert run("certify", *words, "--goal", "recall >= 0.8") == 2
        assert "alerts that were reviewed" in capsys.readouterr().err
    made = certify_table(tmp_path / "p.parquet", "precision >= 0.5", score="s", label="y")
    again = certify(scores, np.where(scores > OLD, labels, np.nan), "precision >= 0.5")
    assert made == again


def test_a_file_keeps_rows_without_a_label(tmp_path):
    file, scores, _ = reviewed(tmp_path / "scores.csv")
    data = read_scores(open_table(file), "s", "y", "g")
    np.testing.assert_array_equal(np.isnan(data.labels), scores <= OLD)
    np.testing.assert_array_equal(data.labelled.scores, scores[scores > OLD])
    assert len(data.labelled.groups) == (scores > OLD).sum()
