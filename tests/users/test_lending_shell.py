"""Lending, from a shell: train, certify and decide with thresholds per group, without a circle."""

import csv
import json

import numpy as np
from cli.shell import run

GOAL = "minimize error subject to demographic_parity(0.1, sex=[f, m]) with thresholds per group"


def write(path, rows=9000, seed=0):
    """Loans with a date, an amount in words of money, and a gap in a column."""
    random = np.random.default_rng(seed)
    sex = np.where(random.random(rows) < 0.5, "f", "m")
    income = random.normal(size=rows) + 0.4 * (sex == "m")
    repaid = income + 0.7 * random.normal(size=rows) > 0.3
    score = income + 0.3 * random.normal(size=rows)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "income", "asked", "day", "sex", "score", "repaid"])
        for i in range(rows):
            given = "" if i % 50 == 0 else f"{income[i]:.3f}"
            day = f"2026-{1 + i % 12:02d}-{1 + i % 28:02d}"
            line = [f"L{i:06d}", given, f"${random.integers(1000, 90000):,}.00", day]
            writer.writerow([*line, sex[i], f"{score[i]:.4f}", "yes" if repaid[i] else "no"])
    return path, sex, score, repaid


def test_scores_are_certified_per_group_by_one_command(tmp_path, capsys):
    path, sex, score, _ = write(tmp_path / "loans.csv")
    out = tmp_path / "c.json"
    columns = ["--score", "score", "--label", "repaid", "--group", "sex"]
    assert run("certify", path, *columns, "--goal", GOAL, "--out", out) == 0
    printed, notes = capsys.readouterr()
    assert printed.startswith("certified: minimize error subject to abs(coverage on")
    assert "Thresholds are chosen on 4,500 rows and proved on 4,500 others" in notes
    found = {p["group"]: p["threshold"] for p in json.loads(out.read_text())["points"]}
    rounded = np.round(score, 4)
    rates = {g: (rounded[sex == g] > found[g]).mean() for g in ("f", "m")}
    told = (
        f"Above the threshold by sex: 'f' {100 * rates['f']:.1f} %, 'm' {100 * rates['m']:.1f} %."
    )
    assert told in notes
    assert abs(rates["f"] - rates["m"]) <= 0.1

    new, new_sex, new_score, _ = write(tmp_path / "new.csv", 3000, seed=1)
    decided = tmp_path / "decided.csv"
    options = ["--score", "score", "--group", "sex", "--certificate", out, "--out", decided]
    assert run("decide", new, *options) == 0
    with decided.open() as file:
        rows = list(csv.DictReader(file))
    at = np.array([found[g] for g in new_sex])
    accepted = np.round(new_score, 4) > at
    words = {row["decision"] for row in rows}
    assert len(words) == 2
    same = np.array([row["decision"] == rows[int(accepted.argmax())]["decision"] for row in rows])
    np.testing.assert_array_equal(same, accepted)
    assert [row["id"] for row in rows[:2]] == ["L000000", "L000001"]
    assert run("check", out, new, *columns) == 0


def test_train_and_certify_refuse_a_goal_that_accepting_everybody_keeps(tmp_path, capsys):
    path, *_ = write(tmp_path / "loans.csv", 400)
    bare = "demographic_parity(0.1, sex=[f, m])"
    given = ["--label", "repaid", "--drop", "score", "--out", tmp_path / "run"]
    columns = ["--label", "repaid", "--score", "score", "--group", "sex"]
    assert run("train", path, *given, "--goal", bare) == 2
    refused = capsys.readouterr().err
    assert "maximize recall subject to" in refused
    assert "holds where everybody is accepted, and best there." in refused
    for goal in (f"maximize recall subject to {bare}", bare):
        for end in (" with thresholds per group", "")[goal == bare :]:
            assert run("certify", path, *columns, "--goal", f"{goal}{end}") == 2
            assert "body is accepted" in capsys.readouterr().err


def test_the_default_objective_is_announced(tmp_path, capsys):
    path, *_ = write(tmp_path / "loans.csv", 400)
    given = ["--label", "repaid", "--drop", "score", "--model", "linear", "--epochs", 1]
    for out, goal in (("bare", "fpr <= 0.2"), ("whole", "maximize recall subject to fpr <= 0.2")):
        run("train", path, *given, "--goal", goal, "--no-baseline", "--out", tmp_path / out)
        told = "--goal has bounds alone: maximize recall is the objective." in (
            capsys.readouterr().err
        )
        assert told == (out == "bare")


def test_training_leaves_the_protected_column_out_and_thresholds_are_per_group(tmp_path, capsys):
    path, *_ = write(tmp_path / "loans.csv")
    folder = tmp_path / "run"
    given = ["--label", "repaid", "--group", "sex", "--goal", GOAL, "--drop", "id", "score"]
    options = ["--model", "linear", "--epochs", 4, "--no-baseline", "--out", folder]
    assert run("train", path, *given, *options) == 0
    _, notes = capsys.readouterr()
    assert "the group 'sex' is not learned from; --use-protected does." in notes
    assert "read as an amount of money" in notes
    assert "read as days since 1970-01-01" in notes
    assert "missing values in 'income' filled in and marked" in notes
    assert "Above the threshold by sex (calibration rows): 'f' " in notes
    manifest = json.loads((folder / "run.json").read_text())
    learned = {column["name"] for column in manifest["columns"]}
    assert learned == {"income", "asked", "day"}
    new, sex, *_ = write(tmp_path / "new.csv", 3000, seed=1)
    assert run("predict", folder, new, "--out", tmp_path / "decided.csv") == 0
    with (tmp_path / "decided.csv").open() as file:
        yes = np.array([row["decision"] == "yes" for row in csv.DictReader(file)])
    gap = yes[sex == "f"].mean() - yes[sex == "m"].mean()
    assert abs(gap) <= 0.1 + 3 * (2 * 0.25 / 1500) ** 0.5
    (folder / "report.html").read_text("utf-8").index("sex")

    used = [*given, "--use-protected", "--model", "linear", "--epochs", 1, "--no-baseline"]
    run("train", path, *used, "--out", tmp_path / "used")
    assert "the group 'sex' is learned from as well." in capsys.readouterr().err


def test_what_thresholds_per_group_cannot_use_is_refused(tmp_path, capsys):
    rows = [f"{i / 100},{i % 2},{'fm'[i // 2 % 2]},{i}" for i in range(400)]
    (tmp_path / "scores.csv").write_text("\n".join(["s,y,sex,t", *rows]) + "\n")
    columns = ["--score", "s", "--label", "y", "--group", "sex", "--goal", GOAL]
    assert run("certify", tmp_path / "scores.csv", *columns, "--amounts", "t") == 2
    assert (
        "--amounts does not go with --group: a cost with amounts has one threshold"
        in capsys.readouterr().err
    )
    assert run("certify", tmp_path / "scores.csv", *columns, "--time", "t") == 1
    assert "these rows drift" in capsys.readouterr().out  # chosen on the past, proved on later rows
