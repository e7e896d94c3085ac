"""For people who bring scores: certify, report, decide, card, from one csv file."""

import csv
import json
import re
import time

import numpy as np
import pytest
from cli.shell import run, write_scores

from setpoint import certify
from setpoint.certificates import Certificate, certify_three_way
from setpoint.reports import report

GOAL = ("--score", "s", "--label", "y", "--goal", "fpr <= 0.1")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    write_scores(folder / "s.csv")
    write_scores(folder / "new.csv", seed=1)
    assert run("certify", folder / "s.csv", *GOAL, "--out", folder / "c.json") == 0
    per_group = (*GOAL, "--group", "g", "--out", folder / "g.json")
    assert run("certify", folder / "s.csv", *per_group) == 0
    return folder


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_decide_with_one_threshold(made, tmp_path, capsys):
    out = tmp_path / "d.csv"
    words = ("decide", made / "new.csv", "--score", "s", "--certificate", made / "c.json")
    assert run(*words, "--out", out, "--names", "pass", "block") == 0
    rows = read(out)
    threshold = Certificate.from_json((made / "c.json").read_text()).threshold
    expected = ["block" if float(row["s"]) > threshold else "pass" for row in rows]
    assert [row["decision"] for row in rows] == expected
    assert f"{expected.count('block'):,} 'block'" in capsys.readouterr().out
    assert [list(row.values())[:3] for row in rows] == [
        list(row.values()) for row in read(made / "new.csv")
    ]


def test_decide_with_a_threshold_per_group(made, tmp_path, capsys):
    out = tmp_path / "d.csv"
    words = ("decide", made / "new.csv", "--score", "s", "--certificate", made / "g.json")
    assert run(*words, "--out", out) == 2
    assert "has a threshold for each g: add --group g" in capsys.readouterr().err
    assert run(*words, "--out", out, "--group", "g") == 0
    thresholds = Certificate.from_json((made / "g.json").read_text()).thresholds
    for row in read(out):
        assert row["decision"] == str(int(float(row["s"]) > thresholds[row["g"]]))
    plain = ("decide", made / "new.csv", "--score", "s", "--certificate", made / "c.json")
    assert run(*plain, "--out", tmp_path / "e.csv", "--group", "g") == 2
    assert "one threshold for everyone: leave --group out" in capsys.readouterr().err


def test_decide_three_ways_and_refuse_what_is_not_certified(made, tmp_path, capsys):
    rows = read(made / "s.csv")
    s, y = (np.array([float(row[name]) for row in rows]) for name in "sy")
    found = certify_three_way(s, y == 1, "precision >= 0.7", "npv >= 0.7")
    (tmp_path / "three.json").write_text(found.to_json())
    words = ("decide", made / "new.csv", "--score", "s", "--certificate", tmp_path / "three.json")
    assert run(*words, "--out", tmp_path / "d.csv", "--json") == 0
    told = json.loads(capsys.readouterr().out)["decisions"]
    assert set(told) <= {"accept", "review", "reject"}
    scores = [float(row["s"]) for row in read(made / "new.csv")]
    assert [row["decision"] for row in read(tmp_path / "d.csv")] == found.decide(scores).tolist()
    (tmp_path / "no.json").write_text(certify(s[:20], y[:20] == 1, "fpr <= 0.001").to_json())
    words = ("decide", made / "new.csv", "--score", "s", "--certificate", tmp_path / "no.json")
    assert run(*words, "--out", tmp_path / "e.csv") == 2
    assert "decides nothing: the goal is infeasible" in capsys.readouterr().err
    assert not (tmp_path / "e.csv").exists()


def test_decide_keeps_parquet_as_it_is(made, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    ids = pa.array([1800000000000000000 + i for i in range(3)])
    table = pa.table({"id": ids, "s": [0.0, 9.0, -9.0], "tags": [["a"], [], None]})
    parquet.write_table(table.replace_schema_metadata({"k": "v"}), tmp_path / "t.parquet")
    words = ("decide", tmp_path / "t.parquet", "--score", "s", "--certificate", made / "c.json")
    assert run(*words, "--out", tmp_path / "d.parquet") == 0
    after = parquet.read_table(tmp_path / "d.parquet")
    assert after.select(["id", "s", "tags"]).equals(parquet.read_table(tmp_path / "t.parquet"))
    assert after.schema.metadata == {b"k": b"v"}
    assert after.column("decision").to_pylist() == ["0", "1", "0"]


def test_the_page_of_scores(made, tmp_path, capsys):
    words = ("report", made / "new.csv", "--certificate", made / "c.json", "--score", "s")
    out = tmp_path / "page.html"
    assert run(*words, "--out", out) == 2
    assert "needs --label COLUMN, too" in capsys.readouterr().err
    assert run("report", made / "c.json") == 2
    told = "(named first: they are not the certificate) needs --certificate FILE, --score COLUMN"
    assert told in capsys.readouterr().err
    named = ("--label", "y", "--group", "g", "--positive-name", "fraud")
    assert run(*words, *named, "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(out)}
    page = out.read_text()
    for part in ("✓ Certified", "Curves at the operating point", "fraud", "If the threshold moved"):
        assert part in page
    assert "Groups" in page
    assert "On test data" in page
    assert run("report", made / "s.csv", *words[2:], *named, "--out", out, "--force") == 0
    assert "On calibration data" in out.read_text()  # its own rows are known by their counts


def test_the_page_shows_periods_and_costs(made):
    rows = read(made / "new.csv")
    s, y = (np.array([float(row[name]) for row in rows]) for name in "sy")
    found = Certificate.from_json((made / "c.json").read_text())
    days = np.array(["2026-01-31", "2026-02-01", "2026-02-28", "2026-03-05"])[np.arange(1000) % 4]
    page = report(s, y, found, times=days, by="month", costs=(500.0, 5.0))
    numbers = json.loads(page.split('id="setpoint-report">')[1].split("</script>")[0])
    assert [p["name"] for p in numbers["periods"]] == ["2026-01", "2026-02", "2026-03"]
    assert [p["count"] for p in numbers["periods"]] == [250, 500, 250]
    february = np.isin(np.arange(1000) % 4, (1, 2)) & (y == 0)
    expected = (s[february] > found.threshold).mean()
    assert numbers["periods"][1]["fpr"]["value"] == pytest.approx(expected)
    above = s > found.threshold
    span = 34  # from 31 January to 5 March, both included
    paid = (500 * (~above & (y == 1)).sum() + 5 * (above & (y == 0)).sum()) / span
    assert (numbers["days"], numbers["dates"]) == (span, ["2026-01-31", "2026-03-05"])
    assert f"<dt>Cost a day</dt><dd>{paid:,.0f}<" in page
    assert f"<dt>Alerts a day</dt><dd>{above.sum() / span:,.1f}<" in page
    assert "A miss costs 500, a false alarm 5;" in page
    assert "31 January 2026" in page


def test_dates_are_those_of_the_rows_that_are_shown():
    random = np.random.default_rng(0)
    y = random.random(2000) < 0.3
    s, days = random.normal(size=2000) + 2 * y, np.datetime64("2026-01-01") + np.arange(2000) // 50
    found = certify(s, y, "fpr <= 0.1", times=days)
    assert "9 February 2026" in report(s, y, found)
    assert "February 2026" not in report(s[:500], y[:500], found)  # others, whenever they came


def test_a_scored_file_gives_a_certificate_and_a_page_by_one_command(made, tmp_path, capsys):
    page = tmp_path / "p.html"
    words = ("certify", made / "s.csv", *GOAL, "--page", page, "--positive-name", "fraud")
    named = ("--negative-name", "legitimate payments", "--action", "stop")
    assert run(*words, *named, "--test", made / "new.csv", "--costs", "500", "5") == 0
    assert "certified: fpr <= 0.1" in capsys.readouterr().out
    said = "At most 1 in 10 legitimate payments is stopped: proved with 95 % confidence"
    text = page.read_text()
    assert f"<title>{said}</title>" in text
    numbers = json.loads(text.split('id="setpoint-report">')[1].split("</script>")[0])
    assert [split["name"] for split in numbers["splits"]] == ["calibration", "test"]
    assert run(*words, "--force", "--no-script") == 0
    assert "<script>" not in page.read_text()


def test_checks_are_noted_and_shown(made, tmp_path, capsys):
    (tmp_path / "c.json").write_text((made / "c.json").read_text())
    check = ("check", tmp_path / "c.json", made / "new.csv", "--score", "s", "--label", "y")
    assert run(*check) == 0
    assert "checks so far" not in capsys.readouterr().out
    assert run(*check) == 0
    told = capsys.readouterr().out
    assert "2 checks so far" in told
    assert "0.2 %" in told  # twice the significance
    assert run(*check, "--no-history") == 0
    noted = tmp_path / "c.checks.jsonl"
    entries = [json.loads(line) for line in noted.read_text().splitlines()]
    assert [entry["verdict"] for entry in entries] == ["ok", "ok"]
    capsys.readouterr()
    assert run(*check, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["history"]) == 3
    words = ("report", made / "new.csv", "--certificate", tmp_path / "c.json", "--score", "s")
    assert run(*words, "--label", "y", "--out", tmp_path / "p.html") == 0
    assert (tmp_path / "p.html").read_text().count('<span class="says holds">ok</span>') == 3
    assert run("certify", made / "new.csv", *GOAL, "--out", tmp_path / "c.json", "--force") == 0
    assert run(*words, "--label", "y", "--out", tmp_path / "p.html", "--force") == 0
    assert "Checks since" not in (tmp_path / "p.html").read_text()  # of another certificate


def test_a_history_that_cannot_be_written_changes_no_verdict(made, tmp_path, capsys):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine\n")
    check = ("check", made / "c.json", made / "new.csv", "--score", "s", "--label", "y")
    assert run(*check, "--history", mine) == 0
    assert "This check is not noted" in capsys.readouterr().err
    assert mine.read_text() == "mine\n"
    assert run(*check, "--history", tmp_path / "no" / "h.jsonl") == 0
    assert (tmp_path / "no" / "h.jsonl").exists()
    assert run(*check, "--history", tmp_path / "h.jsonl", "--json") == 0
    assert list(tmp_path.glob(".*")) == []


def test_the_page_in_one_call_says_what_it_needs(made):
    rows = read(made / "s.csv")
    s, y = (np.array([float(row[name]) for row in rows]) for name in "sy")
    g = np.array([row["g"] for row in rows])
    each = Certificate.from_json((made / "g.json").read_text())
    with pytest.raises(ValueError, match=r"one threshold for each g: pass groups=\{'g': ...\}"):
        report(s, y, each)
    assert "Threshold per group" in report(s, y, each, groups={"g": g})
    assert "Infeasible" in report(s, y, certify(s, y, "fpr <= 0.0001"))


def test_the_card_of_a_certificate(made, capsys):
    assert run("card", made / "c.json") == 0
    assert "## Promise" in capsys.readouterr().out
    assert run("card", made / "s.csv") == 2
    assert "is not a certificate that setpoint wrote" in capsys.readouterr().err


def test_a_hundred_thousand_rows_take_seconds(tmp_path):
    """Certificate and page in under 3 seconds; of processor time, as others may use the machine."""
    path = write_scores(tmp_path / "s.csv", rows=100_000)
    start = time.process_time()
    words = (*GOAL, "--out", tmp_path / "c.json", "--page", tmp_path / "p.html")
    assert run("certify", path, *words) == 0
    assert time.process_time() - start < 3


def test_dates_of_test_rows_are_on_the_page(tmp_path, capsys):
    random = np.random.default_rng(1)
    for name, first, rows in (("old", "2026-01-01", 3000), ("new", "2026-03-01", 1000)):
        y = random.random(rows) < 0.3
        s = random.normal(size=rows) + 2 * y
        days = np.datetime64(first) + np.arange(rows) // 100
        lines = [f"{a},{int(b)},{d}" for a, b, d in zip(s, y, days, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["s,y,day", *lines]))
    words = ("certify", tmp_path / "old.csv", *GOAL, "--time", "day")
    assert run(*words, "--test", tmp_path / "new.csv", "--page", tmp_path / "p.html") == 0
    capsys.readouterr()
    page = (tmp_path / "p.html").read_text()
    numbers = json.loads(page.split('id="setpoint-report">')[1].split("</script>")[0])
    assert (numbers["days"], numbers["dates"]) == (10, ["2026-03-01", "2026-03-10"])
    assert "<dt>Alerts a day</dt>" in page


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--accept", "precision >= 0.9", "--reject", "npv >= 0.9", "--id", "g"), "id"),
        (("--accept", "precision >= 0.9", "--reject", "npv >= 0.9", "--amounts", "s"), "amounts"),
        (("--goal", "alerts <= 9 per day on 90 % of days", "--time", "g", "--group", "g"), "group"),
        (("--goal", "fpr <= 0.1", "--plan", "p.json", "--clusters", "g"), "clusters"),
    ],
)
def test_options_that_would_be_ignored_are_refused(made, capsys, words, option):
    assert run("certify", made / "new.csv", "--score", "s", "--label", "y", *words) == 2
    assert re.search(f"--{option} goes|not go with --{option}", capsys.readouterr().err)


def test_three_ways_are_checked_and_tested_from_the_shell(tmp_path, capsys):
    rows, new = (write_scores(tmp_path / f"{i}.csv", 4000, 3.0, seed=i) for i in (0, 1))
    both = ("--accept", "precision >= 0.9", "--reject", "npv >= 0.9")
    made, columns = tmp_path / "c.json", ("--score", "s", "--label", "y")
    assert run("certify", rows, *columns, *both, "--out", made, "--test", new) == 0
    assert run("check", made, new, *columns) == 0
    assert "precision >= 0.9, accept" in capsys.readouterr().out


def test_periods_of_what_is_not_certified_for_another_reason_than_drift(tmp_path, capsys):
    """Rates at the threshold without the times are shown where drift alone is the reason."""
    place = write_scores(tmp_path / "s.csv", rows=60)
    lines = place.read_text().splitlines()
    dated = [f"{line},2026-0{1 + i // 30}-01" for i, line in enumerate(lines[1:])]
    place.write_text("\n".join([f"{lines[0]},day", *dated]) + "\n")
    words = ("certify", place, "--score", "s", "--label", "y", "--goal", "fpr <= 0.01")
    assert run(*words, "--time", "day", "--by", "month") == 1
    said = capsys.readouterr().out
    assert "infeasible" in said
    assert "at the threshold that the rows without their times" not in said


@pytest.mark.parametrize("blank", [0, 40])
def test_a_page_of_thresholds_per_group_is_about_the_rows_that_prove_them(tmp_path, blank):
    """All rows were called test data, half of which had chosen the thresholds."""
    place = write_scores(tmp_path / "s.csv", rows=3000)
    header, *lines = place.read_text().splitlines()
    lines[:blank] = [line.replace(",0,", ",,").replace(",1,", ",,") for line in lines[:blank]]
    place.write_text("\n".join([header, *lines]) + "\n")
    gap = "minimize error subject to demographic_parity(0.2, g=[a, b]) with thresholds per group"
    words = ("--score", "s", "--label", "y", "--group", "g")
    made, one, two = (tmp_path / name for name in ("c.json", "1.html", "2.html"))
    assert run("certify", place, *words, "--goal", gap, "--out", made, "--page", one) == 0
    assert run("report", place, *words, "--certificate", made, "--out", two) == 0
    for text in (one.read_text(), two.read_text()):
        assert "Measured on calibration data" in text
        assert re.search(r"The thresholds were chosen on 1,\d\d\d other rows", text)
    other = write_scores(tmp_path / "t.csv", rows=3000, seed=1)
    assert run("report", other, *words, "--certificate", made, "--out", two, "--force") == 0
    assert "Measured on test data" in two.read_text()
    assert run("check", made, other, *words[:4]) == 0  # it knows the column of its groups
