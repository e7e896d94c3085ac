"""``setpoint plan``, and the certificates of its labels; three-way decisions from a shell."""

import csv
import json

import numpy as np
import pytest
from cli.shell import run as run_command

N = 6000


class Done:
    """What a command did."""

    def __init__(self, code, streams):
        self.code, self.out, self.err = code, streams.out, streams.err


@pytest.fixture
def run(capsys):
    return lambda *words: Done(run_command(*words), capsys.readouterr())


@pytest.fixture
def table(tmp_path):
    """A csv of scores without labels, and the labels that a plan will ask for."""
    random = np.random.default_rng(0)
    positive = random.random(N) < 0.05
    scores = random.normal(size=N) + 3.5 * positive
    path = tmp_path / "scores.csv"
    lines = [f"c{i:05d},{score!r}" for i, score in enumerate(scores.tolist())]
    path.write_text("\n".join(["id,s", *lines]) + "\n")
    return path, positive


def fill(path, positive, **more):
    """Label the rows that a plan wrote."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["label"] = int(positive[int(row["plan_row"])])
        row.update(more)
    out = path.with_name("labelled.csv")
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return out, rows


def planned(run, table, goal="fpr <= 0.02", *more):
    path, _ = table
    out = path.with_name("to_label.csv")
    words = ("--goal", goal, "--budget", "600", "--prevalence", "0.05", "--out", out)
    return out, run("plan", path, "--score", "s", *words, *more)


def test_from_an_unlabelled_file_to_a_certificate(run, table):
    out, done = planned(run, table)
    assert done.code == 0
    labelled, rows = fill(out, table[1])
    assert len(rows) == 600
    assert all(row["id"] == f"c{int(row['plan_row']):05d}" for row in rows)
    words = ("--goal", "fpr <= 0.02", "--plan", f"{out}.plan.json", "--labels", labelled)
    found = run("certify", table[0], "--score", "s", *words)
    assert found.code == 0
    assert "certified: fpr <= 0.02" in found.out


def test_mistakes_are_told_in_one_line(run, table):
    out, _ = planned(run, table)
    path, positive = table
    goal, plan = ("--goal", "fpr <= 0.02"), ("--plan", f"{out}.plan.json")
    assert "add --goal" in run("certify", path, "--score", "s").err
    assert "--labels FILE" in run("certify", path, "--score", "s", *goal, *plan).err
    wrong, _ = fill(out, positive, plan_row=99999)
    found = run("certify", path, "--score", "s", *goal, *plan, "--labels", wrong)
    assert (found.code, "plan_row 99999 is no row" in found.err) == (2, True)
    found = run("certify", path, "--score", "s", *goal, "--plan", path, "--labels", wrong)
    assert (found.code, "not JSON" in found.err) == (2, True)
    right, rows = fill(out, positive)
    first = right.read_text().splitlines()[1]
    for label, code in ((rows[0]["label"], 0), (1 - rows[0]["label"], 2)):  # by two reviewers
        with right.open("a") as file:
            file.write(f"{first.rpartition(',')[0]},{label}\n")
        found = run("certify", path, "--score", "s", *goal, *plan, "--labels", right)
        assert found.code == code
    assert f"plan_row {rows[0]['plan_row']} is there twice, with different labels" in found.err
    assert planned(run, table, "recall >= 0.9")[1].code == 2  # the files are there already
    assert "reviewed" in planned(run, table, "recall >= 0.9", "--force")[1].err


def test_three_way_decisions(run, table, tmp_path):
    path, positive = table
    full = tmp_path / "full.csv"
    lines = path.read_text().splitlines()
    full.write_text(
        "\n".join(
            [f"{lines[0]},y"]
            + [f"{line},{int(label)}" for line, label in zip(lines[1:], positive, strict=True)]
        )
    )
    out = tmp_path / "certificate.json"
    words = ("--accept", "precision >= 0.9", "--reject", "npv >= 0.99", "--out", out)
    assert run("certify", full, "--score", "s", "--label", "y", *words).code == 0
    decisions = tmp_path / "decisions.csv"
    words = ("--certificate", out, "--out", decisions, "--json")
    told = json.loads(run("decide", path, "--score", "s", *words).out)
    assert set(told["decisions"]) == {"accept", "review", "reject"}
    with decisions.open() as file:
        decided = np.array([row["decision"] for row in csv.DictReader(file)])
    assert positive[decided == "accept"].mean() >= 0.9
    assert (~positive[decided == "reject"]).mean() >= 0.99
    lone = run("certify", full, "--score", "s", "--label", "y", "--accept", "precision >= 0.9")
    assert "go together" in lone.err
