"""Rows that belong together and rows in time order, from the shell: certify, check, train."""

import json

import numpy as np
import pytest
from cli.shell import run

from setpoint.tables.related_rows import intraclass_correlation

GOAL = "maximize recall subject to fpr <= 0.1"


def write(path, **columns):
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


def table(count=600, rows=5, seed=0):
    """Features, labels, customers and dates of rows that come in random order."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(count), rows)
    y = (random.random(count) < 0.3)[who].astype(int)
    days = random.integers(0, 300, count * rows)
    x = random.normal(size=count)[who] + 3 * y + 0.1 * random.normal(size=count * rows)
    dates = np.datetime64("2024-01-01") + days
    return {
        "x": x.round(4),
        "age": random.normal(size=len(y)).round(4),
        "y": y,
        "who": who,
        "day": dates,
    }


def trained(tmp_path, *more, **columns):
    data = write(tmp_path / "data.csv", **(columns or table()))
    words = ("train", data, "--label", "y", "--goal", GOAL, "--model", "linear", "--epochs", "1")
    code = run(*words, "--no-baseline", "--out", tmp_path / "run", *more)
    return code, tmp_path / "run" / "certificate.json"


def test_training_keeps_clusters_whole_and_certifies_their_rows(tmp_path, capsys):
    code, path = trained(tmp_path, "--clusters", "who")
    assert code == 0
    certificate = json.loads(path.read_text())
    assert certificate["clusters"] == 120  # a fifth of 600
    assert certificate["points"][0]["examples"] == 120
    assert '"who"' not in (tmp_path / "run" / "run.json").read_text()  # not learned from
    capsys.readouterr()
    new = write(tmp_path / "new.csv", **table(seed=1))
    assert run("check", tmp_path / "run", new, "--label", "y") == 2
    assert "add --clusters" in capsys.readouterr().err
    words = ("--clusters", "who", "--time", "day", "--by", "quarter", "--no-history")
    assert run("check", tmp_path / "run", new, "--label", "y", *words) == 0
    shown = capsys.readouterr().out
    assert "measured from 2024-01-01 to 2024-10-26" in shown
    assert "2024-04: " in shown


def test_a_run_of_clusters_is_tested_on_one_row_of_each(tmp_path, capsys):
    new = write(tmp_path / "new.csv", **table(seed=1))
    code, path = trained(tmp_path, "--clusters", "who", "--test", new)
    assert (code, json.loads(path.read_text())["caveats"]) == (0, [])
    bare = write(tmp_path / "bare.csv", **{**table(), "who": [""] * 3000})
    assert trained(tmp_path, "--clusters", "who", "--test", bare, "--force")[0] == 2
    assert "bare.csv, row 2, column 'who': the value is missing" in capsys.readouterr().err


def test_rows_that_are_there_twice_are_told_and_kept_together_by_clusters(tmp_path, capsys):
    once = table(count=800, rows=1)
    twice = {name: np.repeat(column, 2) for name, column in once.items()}
    trained(tmp_path, "--drop", "who", "day", **twice)
    assert "rows to certify on are copies of rows to train on" in capsys.readouterr().err
    assert "copies of rows to train on" in (tmp_path / "run" / "report.html").read_text()
    trained(tmp_path, "--clusters", "who", "--drop", "day", "--force", **twice)
    assert "copies" not in capsys.readouterr().err
    trained(tmp_path, "--drop", "who", "day", "--force", **once)
    assert "copies" not in capsys.readouterr().err


def test_training_in_time_certifies_the_latest_rows(tmp_path, capsys):
    columns = table(3000, 1)
    code, path = trained(tmp_path, "--time", "day", **columns)
    assert code == 0
    certificate = json.loads(path.read_text())
    first, last = certificate["period"]
    assert last == str(columns["day"].max())
    assert certificate["points"][0]["examples"] == (columns["day"] >= np.datetime64(first)).sum()
    assert certificate["points"][0]["examples"] == pytest.approx(600, abs=20)
    capsys.readouterr()
    late = write(tmp_path / "late.csv", **(columns | {"day": columns["day"] + 400}))
    assert run("check", tmp_path / "run", late, "--label", "y", "--time", "day") == 0
    assert "rows up to then" not in capsys.readouterr().out
    old = tmp_path / "data.csv"
    assert run("check", tmp_path / "run", old, "--label", "y", "--time", "day") == 0
    assert f"The certificate was measured from {first} to {last}: rows up to then" in (
        capsys.readouterr().out
    )


def test_training_with_clusters_and_time(tmp_path):
    columns = table(1500, 4)
    code, path = trained(tmp_path, "--clusters", "who", "--time", "day", **columns)
    assert code == 0
    certificate = json.loads(path.read_text())
    late = columns["day"] >= np.datetime64(certificate["period"][0])
    late_customers = set(columns["who"][late])
    early_too = {who for who in late_customers if (~late & (columns["who"] == who)).any()}
    share = 1 - len(early_too) / len(late_customers) / 2
    assert certificate["clusters"] == pytest.approx(share * len(late_customers), abs=2)


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ({"who": 7}, ("--clusters", "who"), "one cluster"),
        ({"day": "soon"}, ("--time", "day"), "'soon' in row 0"),
        ({"day": "2024-01-01"}, ("--time", "day"), "same time in all rows"),
        ({"day": ""}, ("--time", "day"), "row 2, column 'day': the time is missing"),
        ({"who": ""}, ("--clusters", "who"), "row 2, column 'who': the value is missing"),
        ({}, ("--clusters", "whom"), "no column 'whom' (--clusters)"),
        ({}, ("--time", "when"), "no column 'when' (--time)"),
    ],
)
def test_bad_clusters_and_times_train_nothing(tmp_path, capsys, change, words, message):
    columns = table(200, 2)
    columns |= {name: [value] * 400 for name, value in change.items()}
    assert trained(tmp_path, *words, **columns)[0] == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_columns_that_look_like_ids_and_dates_are_pointed_out(tmp_path, capsys):
    columns = table()
    trained(tmp_path, **columns)
    told = capsys.readouterr().err
    assert "column 'who' has 600 values in 3,000 rows that are alike" in told
    assert "add --clusters who" in told
    assert "--time day" in told
    scores = write(tmp_path / "s.csv", s=columns["x"], y=columns["y"], customer_id=columns["who"])
    words = ("certify", scores, "--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
    run(*words)
    assert "add --clusters customer_id" in capsys.readouterr().err
    run(*words, "--clusters", "customer_id")
    assert "add --clusters" not in capsys.readouterr().err
    dated = write(
        tmp_path / "d.csv",
        s=columns["x"],
        y=columns["y"],
        customer_id=columns["who"],
        day=columns["day"],
        sent=columns["day"],
    )
    run(words[0], dated, *words[2:], "--time", "day")
    told = capsys.readouterr().err
    assert "add --clusters customer_id" in told  # an order says nothing of who belongs together
    assert "holds dates" not in told
    random = np.random.default_rng(0)
    plain = {"s": columns["x"], "y": columns["y"], "age": random.integers(18, 90, 3000)}
    plain |= {"row": np.arange(3000), "city": random.integers(0, 900, 3000)}
    write(scores, **plain)
    run(*words)
    assert "--clusters" not in capsys.readouterr().err


def test_rates_by_month_with_a_test_for_drift(tmp_path, capsys):
    random = np.random.default_rng(0)
    days = np.sort(random.integers(0, 300, 6000))
    y = (random.random(6000) < 0.3).astype(int)
    s = random.normal(size=6000) + 2 * y
    dates = np.datetime64("2024-01-01") + days
    scores = write(tmp_path / "s.csv", s=s.round(4), y=y, day=dates)
    words = ("certify", scores, "--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
    in_time = (*words, "--time", "day", "--by", "month")
    assert run(*in_time) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Rates by month")
    assert "2024-01: " in shown
    assert "drift test (false alarm 0.1 %): no drift found" in shown
    write(scores, s=(s + days / 150).round(4), y=y, day=dates)
    assert run(*in_time) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("Not certified; at the threshold")
    assert "2024-10: " in shown
    assert "drift test (false alarm 0.1 %): these rows drift" in shown


def test_intraclass_correlation_is_that_of_the_model():
    """One-way random effects: 0.3 of the variance lies between 2,000 groups of unequal size.

    Its standard error is about sqrt(2 / 2000) * (1 + 4 * 0.3) * 0.7 / 5 < 0.02.
    """
    random = np.random.default_rng(0)
    codes = np.repeat(np.arange(2000), random.integers(2, 9, 2000))
    level = np.sqrt(0.3) * random.normal(size=2000)[codes]
    values = level + np.sqrt(0.7) * random.normal(size=len(codes))
    assert intraclass_correlation(values, codes) == pytest.approx(0.3, abs=0.06)
    assert intraclass_correlation(random.normal(size=len(codes)), codes) == 0
    assert intraclass_correlation(np.ones(4), np.array([0, 0, 1, 1])) == 0


def test_the_page_of_clusters_counts_the_rows_of_the_certificate(tmp_path):
    data = write(tmp_path / "data.csv", **table())
    words = ("--score", "x", "--label", "y", "--clusters", "who")
    goal = ("--goal", "fpr <= 0.1", "--out", tmp_path / "c.json", "--page", tmp_path / "page.html")
    assert run("certify", data, *words, *goal) == 0
    again = ("--certificate", tmp_path / "c.json", "--out", tmp_path / "again.html")
    assert run("report", data, *words, *again) == 0
    for name in ("page.html", "again.html"):
        page = (tmp_path / name).read_text()
        assert "Measured on calibration data" in page
        assert "One row of each of 600 clusters is counted." in page


def rows_to_spoil(tmp_path, **other):
    """Scores, labels, ids, dates and amounts of 400 rows, some columns replaced."""
    random = np.random.default_rng(0)
    y = (random.random(400) < 0.3).astype(int)
    columns = {
        "s": random.normal(size=400) + 3 * y,
        "y": y,
        "who": np.arange(400) // 2,
        "day": np.datetime64("2024-01-01") + np.arange(400) // 4,
        "amount": random.integers(1, 9, 400),
    }
    return write(tmp_path / "rows.csv", **(columns | other))


@pytest.mark.parametrize(
    ("other", "words", "message"),
    [
        ({"who": ["", *range(399)]}, ("--clusters", "who"), "row 2, column 'who': the value is"),
        ({"who": ["x"] * 400}, ("--clusters", "who"), "All rows belong to one cluster"),
        ({"who": ["x"] * 400}, ("--clusters", "who"), "leave --clusters out"),
        ({"day": ["2024-01-01"] * 400}, ("--time", "day"), "or leave --time out"),
        ({"day": ["soon"] * 400}, ("--time", "day"), "'soon'"),
        ({"amount": [-1] * 400}, ("--amounts", "amount"), "row 2, column 'amount': -1 is negative"),
        ({"amount": [0] * 400}, ("--amounts", "amount"), "All amounts are 0"),
    ],
)
def test_rows_that_cannot_be_certified_are_told_in_the_words_of_the_shell(
    tmp_path, capsys, other, words, message
):
    file = rows_to_spoil(tmp_path, **other)
    goal = "cost(miss=1, false_alarm=5) <= 9" if "--amounts" in words else "fpr <= 0.1"
    out = tmp_path / "c.json"
    given = ("--score", "s", "--label", "y", "--goal", goal, "--out", out, *words)
    assert run("certify", file, *given) == 2
    told = capsys.readouterr().err
    assert message in told
    assert not any(f"{name}=" in told for name in ("clusters", "times", "amounts"))
    assert not out.exists()


@pytest.mark.parametrize("costs", ["miss=-1, false_alarm=5", "miss=0, false_alarm=0"])
def test_costs_that_are_none_are_told(tmp_path, capsys, costs):
    file = rows_to_spoil(tmp_path)
    words = ("--score", "s", "--label", "y", "--goal", f"cost({costs}) <= 9")
    assert run("certify", file, *words) == 2
    assert "must be at least 0" in (told := capsys.readouterr().err) or "all zero" in told


def test_a_threshold_for_each_output_and_group_says_what_to_do(tmp_path, capsys):
    """The confidence that it names is the one that both outputs need together."""
    file = rows_to_spoil(tmp_path, day=np.arange(400) % 2)
    both = ("--score", "s", "--score", "amount", "--label", "y", "--label", "day")
    assert run("certify", file, *both, "--group", "who", "--goal", "fpr <= 0.1") == 2
    told = capsys.readouterr().err
    assert "certify every output by itself with confidence 0.975" in told
    assert 'fpr on who="..."' in told


def test_percentages_and_decimals_are_no_ids(tmp_path, capsys):
    random = np.random.default_rng(0)
    y = random.random(2000) < 0.3
    level = (random.normal(size=2000) + y).round(1)  # few values, and alike within one
    share, ratio = [f"{v:.1f} %" for v in level + 9], [f"{v / 10:.2f}" for v in level]
    columns = {"s": random.normal(size=2000) + 2 * y, "y": y.astype(int)}
    columns |= {"account share": share, "client": ratio, "card": (level * 10).astype(int)}
    data = write(tmp_path / "s.csv", **columns)
    run("certify", data, "--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
    hints = [line for line in capsys.readouterr().err.splitlines() if "--clusters" in line]
    assert ["'card'" in hint for hint in hints] == [True]


def test_customers_are_pointed_out_beside_scores_with_a_decimal_comma(tmp_path, capsys):
    random = np.random.default_rng(0)
    who, y = random.integers(0, 400, 3000), random.random(3000) < 0.3
    scores = random.normal(size=400)[who] + random.normal(size=3000) + y
    lines = [f"{s:.4f};{int(t)};K{c}" for s, t, c in zip(scores, y, who, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["s;y;kunde", *lines]).replace(".", ","))
    words = ("--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
    run("certify", tmp_path / "s.csv", *words)
    assert "add --clusters kunde" in capsys.readouterr().err


def test_test_rows_of_a_page_count_once_for_each_cluster(tmp_path, capsys):
    rows, later = table(2000, 3), table(1000, 4, seed=1)
    one, other = write(tmp_path / "a.csv", **rows), write(tmp_path / "b.csv", **later)
    words = ("--score", "x", "--label", "y", "--clusters", "who")
    made, page = tmp_path / "c.json", tmp_path / "p.html"
    outputs = ("--out", made, "--page", page)
    assert run("certify", one, *words, "--goal", GOAL, "--test", other, *outputs) == 0
    told = json.loads(page.read_text().split('id="setpoint-report">')[1].split("</script>")[0])
    assert [split["count"] for split in told["splits"]] == [2000, 1000]
    page = ("report", other, "--certificate", made, "--out", tmp_path / "q.html")
    capsys.readouterr()
    assert run(*page, "--score", "x", "--label", "y") == 2
    assert "c.json is about a row of each cluster: add --clusters COLUMN" in capsys.readouterr().err
    assert run(*page, *words) == 0
