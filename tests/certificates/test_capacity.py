"""At most k alerts a day on a share of days: proved, decided, checked, from the shell."""

import json

import numpy as np
import pytest
from certificates.simulate import most
from scipy import stats

from setpoint.certificates import CannotPromise, Certificate, certify
from setpoint.certificates.capacity import next_alerts
from setpoint.cli import main
from setpoint.problems import Capacity, parse_capacity

GOAL = "alerts <= 20 per day on 90 % of days"


def days(seed, count=120, rows=200, effect=0.3):
    """Days with a random shift of all scores, and a random number of rows."""
    random = np.random.default_rng(seed)
    sizes = random.poisson(rows, count)
    shift = effect * random.normal(size=count)
    day = np.repeat(np.arange(count), sizes)
    times = np.datetime64("2024-01-01T06:00") + day.astype("timedelta64[D]")
    return random.normal(size=len(day)) + shift[day], times, day


def share_of_days_over(threshold, alerts, rows=200, effect=0.3):
    """Given the shift of a day, its alerts are Poisson."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    mean = rows * stats.norm.sf(threshold - effect * nodes)
    return float(weights @ stats.poisson.sf(alerts, mean) / weights.sum())


@pytest.mark.parametrize("text", [GOAL, "Alerts at most 20 per day on 0.9 of days"])
def test_the_sentence_reads_back(text):
    found = parse_capacity(text)
    assert found == Capacity(20, "day", 0.9)
    assert parse_capacity(str(found)) == found
    assert parse_capacity("fpr <= 0.1") is None


def test_the_number_of_a_day_decides_whether_it_has_too_many_alerts():
    scores, _, day = days(0, count=30)
    for capacity in (0, 3, 20, 10_000):
        values = next_alerts(scores, day, capacity)
        for threshold in (-9.0, 0.0, 1.3, 2.0):
            alerts = np.bincount(day, weights=scores > threshold, minlength=30)
            np.testing.assert_array_equal(values > threshold, alerts > capacity)


def test_the_threshold_is_the_order_statistic_of_days():
    scores, times, day = days(0)
    made = certify(scores, None, GOAL, times=times)
    over = np.bincount(day, weights=made.decide(scores)) > 20
    allowed = max(m for m in range(120) if stats.binom.cdf(m, 120, 0.1) <= 0.05)
    assert over.sum() == allowed
    next_score = scores[scores < made.threshold].max()
    over = np.bincount(day, weights=scores > next_score - 1e-9) > 20
    assert made.claims[0].proved == pytest.approx(stats.beta.isf(0.05, allowed + 1, 120 - allowed))
    assert Certificate.from_json(made.to_json()) == made


def test_the_promise_is_broken_as_rarely_as_promised():
    """300 draws of 120 days whose scores shift from day to day."""
    broken = 0
    for seed in range(300):
        scores, times, _ = days(seed, rows=60)
        made = certify(
            scores, None, "alerts <= 6 per day on 90 % of days", times=times, accept_drift=True
        )
        broken += share_of_days_over(made.threshold, 6, rows=60) > 0.1
    assert 0.005 < broken / 300 <= most(0.05, 300)


def test_check_counts_new_days():
    scores, times, _ = days(0)
    made = certify(scores, None, GOAL, times=times)
    fresh, when, _ = days(1)
    assert made.check(fresh, times=when).verdict == "ok"
    assert made.check(fresh + 0.5, times=when).verdict == "broken"
    with pytest.raises(ValueError, match="pass times"):
        made.check(fresh)


def test_too_few_days_and_bad_input_are_told():
    scores, times, day = days(0)
    few = certify(scores[day < 20], None, GOAL, times=times[day < 20])
    assert few.status == "infeasible"
    assert few.notes == ("`alerts <= 20 per day on 0.9 of days` needs 29 days, you have 20",)
    with pytest.raises(CannotPromise, match="pass times"):
        certify(scores, None, GOAL)
    with pytest.raises(ValueError, match="a goal of alerts per period does not go with"):
        certify(scores, None, GOAL, times=times, clusters=day)
    with pytest.raises(ValueError, match="A period is one of"):
        certify(scores, None, "alerts <= 20 per shift on 90 % of shifts", times=times)
    with pytest.raises(ValueError, match="Expected 'days'"):
        certify(scores, None, "alerts <= 20 per day on 90 % of weeks", times=times)
    with pytest.raises(ValueError, match="whole number"):
        Capacity(1.5, "day", 0.9)


def test_from_the_shell(tmp_path, capsys):
    scores, times, _ = days(0)
    file, saved = tmp_path / "s.csv", tmp_path / "c.json"
    lines = (f"{s!r},{t}" for s, t in zip(scores.tolist(), times.astype(str), strict=True))
    file.write_text("\n".join(["s,when", *lines]))
    asked = ["certify", str(file), "--score=s", "--time=when", f"--goal={GOAL}", f"--out={saved}"]
    assert main(asked) == 0
    capsys.readouterr()
    assert json.loads(saved.read_text())["goal"] == str(parse_capacity(GOAL))
    assert main(["check", str(saved), str(file), "--score=s", "--time=when"]) == 0
    assert main([*asked[:3], f"--goal={GOAL}"]) == 2
    assert "--time" in capsys.readouterr().err
