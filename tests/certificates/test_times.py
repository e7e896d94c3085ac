"""Rows with times: the period of a certificate, drift within it, rates by month."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from certificates.simulate import sample

from setpoint import certify, fpr
from setpoint.certificates import Certificate, exchangeability
from setpoint.certificates.times import rates_by_period, read_times
from setpoint.cli import main

DAYS = np.datetime64("2024-01-01") + np.arange(2500) // 25  # 100 days


def test_a_certificate_says_when_it_was_measured():
    scores, labels = sample(0)
    plain = certify(scores, labels, fpr <= 0.05)
    found = certify(scores, labels, fpr <= 0.05, times=DAYS)
    assert found.period == ("2024-01-01", "2024-04-09")
    assert (found.threshold, found.caveats) == (plain.threshold, ())
    assert "from 2024-01-01 to 2024-04-09" in str(found)
    assert Certificate.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "times",
    [
        DAYS,
        DAYS.astype(str),
        DAYS.astype("datetime64[ns]"),
        [datetime(2024, 1, 1) + timedelta(days=i // 25) for i in range(2500)],
        np.arange(2500) // 25,
        [f"{i // 25}" for i in range(2500)],
    ],
    ids=["days", "texts", "ns", "datetimes", "numbers", "texts of numbers"],
)
def test_times_are_dates_or_numbers(times):
    scores, labels = sample(0)
    order = np.argsort(read_times(times, scores), kind="stable")
    assert (order == np.arange(2500)).all()
    assert certify(scores, labels, fpr <= 0.05, times=times).exit_code == 0


def test_rows_that_drift_are_a_caveat_in_whatever_order_they_come():
    scores, labels = sample(0)
    moved = scores + np.linspace(0, 2, 2500)
    order = np.random.default_rng(0).permutation(2500)
    for rows in (np.arange(2500), order):
        found = certify(moved[rows], labels[rows], fpr <= 0.05, times=DAYS[rows], accept_drift=True)
        assert found.certified
        assert found.exit_code == 1
        assert "these rows drift" in found.verdict


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (np.where(np.arange(2500) == 7, np.datetime64("NaT"), DAYS), "no time in row 7"),
        (np.where(np.arange(2500) == 7, np.nan, 1.0), "no time in row 7"),
        (["soon", *DAYS.astype(str)[1:]], "'soon' in row 0: write ISO dates"),
        (DAYS[:9], "times must have the shape"),
    ],
)
def test_times_that_cannot_be_used(times, message):
    with pytest.raises(ValueError, match=message):
        certify(*sample(0), fpr <= 0.05, times=times)


def test_rates_by_month_add_up_to_those_of_all_rows():
    scores, labels = sample(0)
    found = certify(scores, labels, fpr <= 0.05)
    rows = list(rates_by_period(found, scores, labels, DAYS, "month"))
    assert [row.period for row in rows] == ["2024-01", "2024-02", "2024-03", "2024-04"]
    assert sum(row.rows for row in rows) == 2500
    months = DAYS.astype("datetime64[M]").astype(str)
    for row in rows:
        inside = (months == row.period) & ~labels
        assert row.value == pytest.approx((scores[inside] > found.threshold).mean())
        assert row.low < row.value < row.high
    (quarter, _) = rates_by_period(found, scores, labels, DAYS, "quarter")
    assert (quarter.period, quarter.rows) == ("2024-01", 91 * 25)
    with pytest.raises(ValueError, match="need dates"):
        list(rates_by_period(found, scores, labels, np.arange(2500), "month"))


def test_rates_by_month_of_clusters_are_means_over_clusters_with_intervals_of_one_row_each():
    random = np.random.default_rng(0)
    ids = np.repeat(np.arange(200), random.integers(1, 40, 200))
    labels = random.random(len(ids)) < 0.3
    scores = random.normal(size=200)[ids] + 0.1 * random.normal(size=len(ids)) + 3 * labels
    when = np.datetime64("2024-01-01") + (ids % 60)
    found = certify(scores, labels, fpr <= 0.2, clusters=ids)
    months = when.astype("datetime64[M]").astype(str)
    for row in rates_by_period(found, scores, labels, when, "month", clusters=ids):
        weights = 1 / np.maximum(np.bincount(ids[months == row.period], minlength=200), 1)[ids]
        inside = (months == row.period) & ~labels
        above = scores > found.threshold
        assert row.value == pytest.approx(weights[inside & above].sum() / weights[inside].sum())
        count = np.unique(ids[months == row.period]).size  # one row of each, 70 % negative
        width = 4 * np.sqrt(row.value * (1 - row.value) / (0.7 * count))
        assert width * 0.7 < row.high - row.low < width * 1.4
        assert row.rows == (months == row.period).sum()


def test_from_a_shell(tmp_path, capsys):
    scores, labels = sample(0)
    path, out = tmp_path / "s.csv", tmp_path / "c.json"
    rows = [f"{s},{int(y)},{d}" for s, y, d in zip(scores, labels, DAYS, strict=True)]
    path.write_text("\n".join(["s,y,day", *rows[::-1]]))
    given = [str(path), "--score=s", "--label=y", "--goal", "fpr <= 0.05", "--out", str(out)]
    assert main(["certify", *given, "--time=day", "--latest=1000", "--by=month"]) == 0
    told = capsys.readouterr()
    assert "from 2024-03-01 to 2024-04-09" in told.out
    assert "2024-04: 225 rows" in told.out
    latest = certify(scores[1500:], labels[1500:], fpr <= 0.05)
    assert Certificate.from_json(out.read_text()).threshold == latest.threshold
    assert main(["certify", *given, "--latest=1000"]) == 2
    again = [*given[:-1], str(tmp_path / "d.json"), "--time=day", "--latest=1000"]
    assert main(["certify", *again, "--confidence=0.9"]) == 0
    assert "certificate number 2 on these rows" in capsys.readouterr().err


def test_certificates_of_every_kind_on_one_table_are_counted(tmp_path, capsys):
    """Among them three-way decisions, several labels and alerts per day."""
    scores, labels = sample(0)
    path = tmp_path / "s.csv"
    rows = [f"{s},{int(y)},{d}" for s, y, d in zip(scores, labels, DAYS, strict=True)]
    path.write_text("\n".join(["s,y,day", *rows]))
    kinds = [
        ["--goal=fpr <= 0.05"],
        ["--accept=precision >= 0.7", "--reject=npv >= 0.9"],
        ["--goal=alerts <= 20 per day on 80 % of days", "--time=day"],
    ]
    for number, words in enumerate(kinds, 1):
        out = str(tmp_path / f"{number}.json")
        main(["certify", str(path), "--score=s", "--label=y", *words, "--out", out])
        told = f"certificate number {number} on these rows" in capsys.readouterr().err
        assert told == (number > 1)


def test_a_trend_is_found_in_few_rows_too():
    """At most one false alarm of 0.1 % in 300 series is expected 26 % of the time; five never."""
    random = np.random.default_rng(0)
    alarms = [exchangeability(random.normal(size=100), significance=0.001) for _ in range(300)]
    assert sum(found.drifts for found in alarms) < 5
    assert exchangeability(random.normal(size=60) + np.linspace(0, 3, 60)).drifts
    assert not exchangeability(np.arange(10.0)).drifts  # too few to tell


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", [float, str])
def test_seconds_since_1970_and_parts_of_them_are_dates(unit, kind):
    when = np.datetime64("2024-03-01T12:34:56") + np.arange(9) * np.timedelta64(7, "h")
    numbers = when.astype(f"datetime64[{unit}]").astype(np.int64)
    assert (read_times(numbers.astype(kind)) == when).all()
    assert (read_times(numbers.astype(kind) + ("" if kind is str else 0.0)) == when).all()
    assert read_times(np.arange(9)).dtype.kind == "f"


@pytest.mark.parametrize(
    ("texts", "order", "first"),
    [
        (["03/04/2024", "05/04/2024"], "day/month", "2024-04-03"),
        (["03/04/2024", "05/04/2024"], "month/day", "2024-03-04"),
        (["03/04/2024", "13/04/2024"], None, "2024-04-03"),
        (["03/04/2024 9:05", "03/31/2024 9:05 PM"], None, "2024-03-04T09:05"),
        (["04/04/2024"], None, "2024-04-04"),
    ],
)
def test_dates_with_slashes_are_read_if_it_is_clear_which_number_is_the_month(texts, order, first):
    assert read_times(texts, order=order)[0] == np.datetime64(first)


def test_dates_that_may_be_two_are_refused():
    with pytest.raises(ValueError, match="may be day/month or month/day: all are like 03/04/2024"):
        read_times(["04/04/2024", "03/04/2024", "05/04/2024"])
    with pytest.raises(ValueError, match="'31/01/2024' in row 0"):
        read_times(["31/01/2024", "03/04/2024"], order="month/day")
