"""Costs with amounts: chosen exactly, bounded by betting, certified on rows that did not choose."""

from dataclasses import replace

import numpy as np
import pytest
from certificates.simulate import most, sample
from cli.shell import run
from scipy.special import ndtr

from setpoint import Problem, certify, fpr, recall
from setpoint.certificates.betting import log_capital, upper_mean
from setpoint.certificates.costs import CostSample, PaidRows, row_costs
from setpoint.certificates.sample import CalibrationSample
from setpoint.certificates.times import rates_by_period
from setpoint.rates import cost
from setpoint.reports import report

MONEY = cost(miss=2, false_alarm=5)


def drawn(random, n):
    """Amounts from 0 to 500 with a mean of 100, the same for both classes."""
    scores, labels = sample(random, n)
    return scores, labels, 500 * random.beta(1, 4, n)


def true_cost(at, miss, false_alarm):
    return 0.2 * ndtr(at - 2.5) * 100 * miss + 0.8 * ndtr(-at) * false_alarm


def test_the_mean_cost_is_that_of_brute_force_at_every_threshold():
    scores, labels, amounts = drawn(np.random.default_rng(0), 60)
    scores = np.round(scores, 1)  # with ties
    paid_rows = PaidRows(scores, labels, amounts, np.arange(60))
    rows = CostSample(CalibrationSample(scores, labels, {}, "float64"), paid_rows, 500.0)
    tried = np.append(np.unique(scores), [-np.inf, np.inf])
    paid = [
        np.mean(2 * amounts * (labels & (scores <= t)) + 5 * (~labels & (scores > t)))
        for t in tried
    ]
    assert rows.values(MONEY, tried) == pytest.approx(np.array(paid))


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_the_bound_of_a_mean_is_wrong_as_rarely_as_promised(n):
    """Rare large losses, where a normal interval fails: 5 % and three standard errors."""
    random = np.random.default_rng(0)
    draws = [np.where(random.random(n) < 0.02, random.random(n), 0.0) for _ in range(400)]
    assert np.mean([upper_mean(x, 1.0, 0.05) < 0.01 for x in draws]) <= most(0.05, 400)


def test_capital_is_expected_to_stay_under_the_hypothesis():
    """Two outcomes with a mean of zero: the expectation over all of them is 1."""
    gains = np.array([[a, b] for a in (-0.9, 0.1) for b in (-0.9, 0.1)])
    chance = np.array([(0.1 if a < 0 else 0.9) * (0.1 if b < 0 else 0.9) for a, b in gains])
    assert np.sum(chance * np.exp([log_capital(g, 0.9) for g in gains])) == pytest.approx(1)


def test_promises_about_costs_are_kept():
    random, bad, made = np.random.default_rng(1), 0, 0
    goal = [recall >= 0.7, cost(miss=1, false_alarm=5) <= 8]
    for _ in range(20):
        found = certify(*drawn(random, 2000)[:2], goal, amounts=500 * random.beta(1, 4, 2000))
        made += found.certified
        if found.certified:
            at = found.threshold
            bad += ndtr(2.5 - at) < 0.7 or true_cost(at, 1, 5) > 8
    assert made > 10
    assert bad / 20 <= most(0.05, 20)  # more draws: benchmarks/certificates_rows.py


def test_the_objective_is_a_cost():
    scores, labels, amounts = drawn(np.random.default_rng(2), 4000)
    problem = Problem(minimize=MONEY, subject_to=recall >= 0.6)
    found = certify(scores, labels, problem, amounts=amounts, largest_amount=500.0)
    assert found.certified
    (money,) = found.objective
    assert money.value == pytest.approx(
        row_costs(MONEY, scores, labels, amounts, found.threshold).mean()
    )
    assert money.low < true_cost(found.threshold, 2, 5) < money.high
    best = min(true_cost(t, 2, 5) for t in np.linspace(-3, 5, 200))
    assert true_cost(found.threshold, 2, 5) < 1.3 * best
    assert "No amount will exceed 500." in found.assumptions
    assert "cost(miss=2, false_alarm=5)" in str(found)


def test_the_order_of_the_rows_does_not_matter():
    random = np.random.default_rng(3)
    scores, labels, amounts = drawn(random, 1000)
    goal, order = MONEY <= 30, random.permutation(1000)
    found = certify(scores, labels, goal, amounts=amounts)
    again = certify(scores[order], labels[order], goal, amounts=amounts[order])
    assert replace(found, fingerprint="") == replace(again, fingerprint="")


def test_given_thresholds_are_tested_on_all_rows():
    scores, labels, amounts = drawn(np.random.default_rng(4), 3000)
    found = certify(scores, labels, MONEY <= 20, amounts=amounts, thresholds=1.0)
    paid = row_costs(MONEY, scores, labels, amounts, 1.0)
    assert found.claims[0].proved == pytest.approx(upper_mean(paid, 2 * amounts.max(), 0.05))


@pytest.mark.parametrize(
    ("goal", "given", "message"),
    [
        (fpr <= 0.1, {"amounts": np.ones(2500)}, "has no cost that amounts enter"),
        (MONEY <= 3, {"amounts": -np.ones(2500)}, "got -1.0 in row 0"),
        (MONEY <= 3, {"amounts": np.full(2500, np.nan)}, "got nan in row 0"),
        (MONEY <= 3, {"amounts": np.zeros(2500)}, "All amounts are 0"),
        (MONEY <= 3, {"amounts": np.ones(9)}, "amounts must have the shape"),
        (MONEY <= 3, {"amounts": np.ones(2500), "largest_amount": 0.5}, "has 1: name the most"),
        (
            MONEY <= 3,
            {"amounts": np.ones(2500), "groups": np.arange(2500) // 2},
            "amounts= does not go with groups=",
        ),
    ],
)
def test_amounts_that_cannot_be_used(goal, given, message):
    with pytest.raises(ValueError, match=message):
        certify(*sample(0), goal, **given)


def test_a_bound_far_below_what_is_paid_gets_no_advice_of_rows():
    scores, labels = sample(0)
    found = certify(scores, labels, MONEY <= 10, amounts=np.where(scores > 0, 1.0, 1e300))
    assert found.status == "not certified"
    assert "would prove it" not in str(found)


def test_amounts_from_the_shell_are_those_of_python(tmp_path, capsys):
    import json

    from setpoint.cli import main

    random = np.random.default_rng(0)
    labels = random.random(3000) < 0.2
    scores, amounts = random.normal(size=3000) + 2.5 * labels, 500 * random.beta(1, 4, 3000)
    table = np.column_stack([scores, labels, amounts])
    file = tmp_path / "s.csv"
    np.savetxt(file, table, delimiter=",", header="s,y,worth", comments="", fmt="%.17g")
    goal = "recall >= 0.7 and cost(miss=1, false_alarm=5) <= 8"
    asked = ["certify", str(file), "--score=s", "--label=y", "--amounts=worth", f"--goal={goal}"]
    main([*asked, "--largest-amount=500", "--json"])
    found = json.loads(capsys.readouterr().out)
    made = certify(scores, labels, goal, amounts=amounts, largest_amount=500.0)
    assert found["claims"][1]["measured"] == made.claims[1].measured
    assert found["points"][0]["threshold"] == made.points[0].threshold


def test_what_is_measured_is_measured_on_the_rows_that_prove_it():
    """So it is never worse than what is proved."""
    for seed in range(30):
        random = np.random.default_rng(seed)
        labels = random.random(400) < 0.2
        made = certify(random.normal(size=400) + 3.5 * labels, labels, "error <= 0.09")
        if made.certified:
            assert made.claims[0].measured <= made.claims[0].proved


def test_a_bound_that_every_row_keeps_is_certified_from_one_row_of_each_class():
    for seed in range(40):
        random = np.random.default_rng(seed)
        given = random.normal(size=3), np.array([0, 1, seed % 2])
        made = certify(*given, cost(miss=1, false_alarm=5) <= 8, amounts=np.ones(3))
        assert all(claim.proved is None or claim.proved <= 5 for claim in made.claims)


def customers(seed, count=300):
    """Up to 19 rows of each customer, alike in score, label and amount."""
    random = np.random.default_rng(seed)
    ids = np.repeat(np.arange(count), random.integers(1, 20, count))
    labels = (random.random(count) < 0.3)[ids]
    own = random.normal(size=count)[ids] + 0.3 * random.normal(size=len(ids))
    amounts = (60 * random.random(count))[ids] * random.random(len(ids))
    return own + 2.5 * labels, labels, amounts, ids


def test_the_cost_of_customers_is_the_mean_over_customers():
    scores, labels, amounts, ids = customers(0)
    goal = "cost(miss=1, false_alarm=5) <= 20"
    given = {"amounts": amounts, "clusters": ids, "largest_amount": 60.0}
    found = certify(scores, labels, goal, thresholds=1.0, **given)
    paid = np.where(labels, amounts * (scores <= 1), 5.0 * (scores > 1))
    means = np.bincount(ids, paid) / np.bincount(ids)
    assert found.clusters == 300
    assert found.claims[0].measured == pytest.approx(means.mean())
    assert found.claims[0].proved == pytest.approx(upper_mean(means, 60.0, 0.05))
    order = np.random.default_rng(1).permutation(len(scores))
    mixed = {**given, "amounts": amounts[order], "clusters": ids[order]}
    again = certify(scores[order], labels[order], goal, **mixed)
    assert again.threshold == certify(scores, labels, goal, **given).threshold


def test_the_cost_of_customers_is_proved_with_its_confidence():
    goal, truth = "cost(miss=1, false_alarm=5) <= 20", []
    for seed in range(1000, 1020):
        scores, labels, amounts, ids = customers(seed, 2000)
        paid = np.where(labels, amounts * (scores <= 1), 5.0 * (scores > 1))
        truth.append((np.bincount(ids, paid) / np.bincount(ids)).mean())
    broken = 0
    for seed in range(60):
        scores, labels, amounts, ids = customers(seed)
        given = {"amounts": amounts, "clusters": ids, "largest_amount": 60.0}
        found = certify(scores, labels, goal, thresholds=1.0, **given)
        broken += found.claims[0].proved < np.mean(truth)
    assert broken <= 8  # 5 % of 60, and three standard errors


def test_new_rows_are_checked_by_what_they_are_worth():
    draws = [drawn(np.random.default_rng(seed), 8000) for seed in (0, 1)]
    (scores, labels, amounts), (new, truth, worth) = draws
    goal = "cost(miss=1, false_alarm=5) <= 8"
    found = certify(scores, labels, goal, amounts=amounts, largest_amount=500.0)
    with pytest.raises(ValueError, match="pass amounts= with labels"):
        found.check(new, truth)
    at, told = found.threshold, found.check(new, truth, amounts=worth)
    paid = np.where(truth, worth * (new <= at), 5.0 * (new > at))
    assert told.verdict == "ok"
    assert told.findings[0].measured == pytest.approx(paid.mean())
    assert f"{paid.mean():.4g} now" in str(told)
    worse = found.check(new - 2.5, truth, amounts=worth)
    assert worse.verdict == "broken"
    assert "test rows contradict it" in found.tested_on(new - 2.5, truth, amounts=worth).verdict
    larger = found.check(new, truth, amounts=2 * worth)
    assert larger.verdict == "drift"
    assert "amounts above 500" in str(larger)
    assert found.check(new).verdict == "ok"  # alerts alone
    days = np.datetime64("2024-01-01") + np.arange(8000) // 100
    months = list(rates_by_period(found, new, truth, days, "month", amounts=worth))
    assert months[0].value == pytest.approx(paid[:3100].mean())
    assert months[0].low < months[0].value < months[0].high
    assert f"<= 8: {paid[:3100].mean():.4g} (" in str(months[0])


def test_amounts_from_a_shell(tmp_path, capsys):
    scores, labels, amounts = drawn(np.random.default_rng(0), 3000)
    lines = [f"{s},{int(y)},{a}" for s, y, a in zip(scores, labels, amounts, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["s,y,a", *lines]))
    columns = ("--score", "s", "--label", "y")
    goal = ("--goal", "cost(miss=1, false_alarm=5) <= 12", "--out", tmp_path / "c.json")
    test = ("--test", tmp_path / "s.csv")
    assert run("certify", tmp_path / "s.csv", *columns, *goal, "--amounts", "a", *test) == 0
    assert run("check", tmp_path / "c.json", tmp_path / "s.csv", *columns, "--amount", "a") == 0
    capsys.readouterr()
    assert run("check", tmp_path / "c.json", tmp_path / "s.csv", *columns) == 2
    assert "pass --amounts with labels" in capsys.readouterr().err


def test_a_page_shows_the_cost_that_the_certificate_knows():
    scores, labels, amounts = drawn(np.random.default_rng(0), 4000)
    goal = "cost(miss=1, false_alarm=5) <= 12"
    found = certify(scores, labels, goal, amounts=amounts, largest_amount=500.0)
    shown = f"{found.claims[0].measured:.4g}"
    page = report(scores, labels, found).split("<style")[-1]
    assert f"calibration: {shown}" in page
    new = report(scores + 0.1, labels, found)  # rows whose amounts the page does not have
    assert shown not in new.split("</style>")[-1].split("<script")[0]
    plain = certify(scores, labels, "cost(miss=5, false_alarm=1) <= 0.9")
    paid = np.where(labels, 5 * (scores <= plain.threshold), scores > plain.threshold)
    assert f"calibration: {paid.mean():.4g} (" in report(scores, labels, plain)
