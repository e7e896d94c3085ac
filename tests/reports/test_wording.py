"""Bounds, verdicts and actions in a reader's words."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from reports.sample import certificate, result

from setpoint import certify, fnr, fpr
from setpoint.reports import report
from setpoint.reports.svg import logarithmic
from setpoint.reports.text import date, in_units, money, percent, rate_name, signed
from setpoint.reports.wording import bounds_in_words, headline, participle
from setpoint.results import Findings, clopper_pearson
from setpoint.results.measured import read_goal

NAMED = {"positive": "fraud", "negative": "legitimate payments", "action": "stop"}


def said(markup):
    return re.sub("</?bdi>", "", str(markup))


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("fpr <= 0.01", "at most 1 in 100 legitimate payments is stopped"),
        ("fpr <= 0.003", "at most 3 in 1,000 legitimate payments are stopped"),
        ("fpr <= 0.0123456", "at most 1.23456 % of legitimate payments are stopped"),
        ("tnr >= 0.99", "at least 99 in 100 legitimate payments are not stopped"),
        ("recall >= 0.95", "at least 95 in 100 fraud cases are stopped"),
        ("fnr <= 0.05", "at most 1 in 20 fraud cases is missed"),
        ("precision >= 0.9", "at least 9 in 10 stopped cases are fraud"),
        ("npv >= 0.99", "at least 99 in 100 cases that are not stopped are not fraud"),
        ("coverage <= 0.02", "at most 1 in 50 cases is stopped"),
        ("error <= 0.1", "at most 1 in 10 cases is decided wrongly"),
        ("cost(miss=500, false_alarm=5) <= 8", "a case costs at most 8 on average"),
        (
            'abs(tpr on sex="f" - tpr on sex="m") <= 0.02',
            "the share of fraud cases that are stopped differs by at most 2 points between "
            "sex = f and sex = m",
        ),
        (
            'fpr on site="a" <= 0.01 and recall >= 0.5',
            "at most 1 in 100 legitimate payments with site = a is stopped and at least 1 in 2 "
            "fraud cases is stopped",
        ),
        ("f_score(1) >= 0.5", "f_score(1) ≥ 0.5"),
    ],
)
def test_bounds(goal, words):
    assert said(bounds_in_words(read_goal(goal).bounds, result(**NAMED))) == words


def test_a_gap_between_groups_is_not_in_each_group():
    bounds = read_goal("demographic_parity(0.1, sex=[f, m])").bounds
    run = result(**NAMED, certificate={"column": "sex"})
    assert said(bounds_in_words(bounds, run)).endswith("between sex = f and sex = m")


def test_without_names_the_classes_are_positives_and_negatives():
    bounds = read_goal("fpr <= 0.01 and recall >= 0.9").bounds
    words = said(bounds_in_words(bounds, result(positive="1")))
    assert (
        words == "at most 1 in 100 negatives is flagged and at least 9 in 10 positives are flagged"
    )


@pytest.mark.parametrize(
    ("verb", "done"),
    [
        *(("flag", "flagged"), ("ban", "banned"), ("open", "opened"), ("review", "reviewed")),
        *(
            ("audit", "audited"),
            ("reject", "rejected"),
            ("hold", "held"),
            ("escalate", "escalated"),
        ),
        *(("delay", "delayed"), ("deny", "denied"), ("fix", "fixed"), ("need", "needed")),
        *(("שלום", "שלום"), ("<b>", "<b>"), ("hold back", "held back")),
    ],
)
def test_what_is_done(verb, done):
    assert participle(verb) == done


@pytest.mark.parametrize(
    ("given", "changes", "words"),
    [
        (
            "certified",
            {},
            "At most 1 in 50 legitimate payments is stopped: proved with 95 % confidence",
        ),
        ("not certified", {}, "Not proved with 95 % confidence: at most 1 in 50 legitimate"),
        ("infeasible", {}, "Too few cases to prove that at most 1 in 50 legitimate payments is"),
        ("certified", {"caveats": ["it accepts nobody"]}, "confidence, but it accepts nobody"),
        ("certified", {"guarantee": "mean"}, "proved on average over calibration samples"),
        ("certified", {"column": "site"}, "is stopped in each group of site: proved"),
        ("certified", {"column": "Group"}, "is stopped in each group: proved"),
    ],
)
def test_headlines(given, changes, words):
    run = result(certificate=certificate(given, **changes), **NAMED)
    assert words in said(headline(Findings(run)))


def test_a_gap_is_told_in_points_and_not_as_code():
    random = np.random.default_rng(0)
    labels, sex = random.random(6000) < 0.3, np.where(random.random(6000) < 0.4, "f", "m")
    scores = random.normal(size=6000) + 2 * labels
    goal = 'minimize error subject to abs(coverage on sex="f" - coverage on sex="m") <= 0.08'
    found = certify(scores, labels, goal, groups={"sex": sex})
    page = report(scores, labels, found, groups={"sex": sex}, action="approve")
    above = scores > found.threshold
    gap = 100 * abs(above[sex == "f"].mean() - above[sex == "m"].mean())
    assert f"<dd>{gap:.3g} points<" in page
    assert "asked ≤ 8 points, proved ≤ " in page
    assert "<dt>Gap in alert rate, sex = f and sex = m</dt>" in page
    assert "Nothing is certified for single groups" not in page
    alike = report(scores, labels, certify(scores, labels, "fpr <= 0.1"), groups={"sex": sex})
    assert "Nothing is certified for single groups" in alike
    assert alike.index('id="groups"') < alike.index('id="threshold"')


def test_only_a_difference_is_told_in_points():
    assert in_units(0.2, fpr - fnr) == "20 points"
    assert in_units(0.2, 0.5 * fpr + 0.5 * fnr) == "20.0 %"


def test_small_words():
    assert (signed(-3), signed(0), signed(1234.5, 1)) == ("\u22123", "±0", "+1,234.5")
    assert (money(1234.4), money(12.345), money(-5)) == ("1,234", "12.35", "\u22125.00")
    assert date("2026-11-18T06:40:39+00:00") == "18 November 2026"
    assert date("<b>") == "<b>"
    bounds = read_goal("cost(miss=500, false_alarm=5) <= 8 and f_score(1) >= 0.5").bounds
    assert [rate_name(b.expression) for b in bounds] == ["cost of a case", "f_score(1)"]


def test_the_certificate_and_the_page_show_one_kind_of_interval():
    """The certificate's own: Clopper and Pearson, sparing the row whose score is its threshold."""
    random = np.random.default_rng(0)
    y = random.random(3000) < 0.2
    s = random.normal(size=3000) + 2 * y
    found = certify(s, y, "fpr <= 5 %")
    (recall,) = (each for each in found.objective if each.name == "recall")
    text = report(s, y, found)
    told = json.loads(text.split('id="setpoint-report">')[1].split("</script>")[0])
    shown = told["splits"][0]["recall"]
    counts = shown["count"], shown["total"]
    assert tuple(shown["interval"].values()) == (recall.low, recall.high)
    assert recall.high == pytest.approx(clopper_pearson(*counts).high, rel=1e-12)
    assert recall.low == pytest.approx(clopper_pearson(counts[0] - 1, counts[1]).low, rel=1e-12)


@pytest.mark.parametrize("goal", ["fpr <= 8 %", 'maximize recall subject to fpr on g="a" <= 5 %'])
def test_with_groups_and_clusters_calibration_rows_are_no_test_rows(goal):
    random = np.random.default_rng(1)
    customer = np.repeat(np.arange(3000), 1 + np.arange(3000) % 3)
    group = random.choice(["a", "b"], len(customer))
    y = random.random(len(customer)) < 0.2
    s = random.normal(size=len(y)) + 2 * y
    found = certify(s, y, goal, clusters=customer, groups={"g": group})
    again = report(s[::-1], y[::-1], found, clusters=customer[::-1], groups={"g": group[::-1]})
    assert "On calibration data" in again
    assert "test data" not in again.split("Test data are the fairest judge")[0]
    other = report(s[:99], y[:99], found, clusters=customer[:99], groups={"g": np.full(99, "a")})
    assert "On test data" in other


def test_of_clusters_the_page_shows_the_rates_that_the_certificate_tells():
    random = np.random.default_rng(0)
    customer = np.repeat(np.arange(1500), 1 + np.arange(1500) % 4)
    y = (random.random(1500) < 0.2)[customer]
    s = random.normal(size=len(y)) + 2 * y
    found = certify(s, y, "fpr <= 5 %", clusters=customer)
    page = report(s, y, found, clusters=customer)
    row = json.loads(page.split('id="setpoint-report">')[1].split("</script>")[0])["splits"][0]
    (recall,) = found.objective
    assert row["recall"]["value"] == recall.value
    assert tuple(row["recall"]["interval"].values()) == (recall.low, recall.high)
    assert row["bounds"][0]["value"] == found.claims[0].measured
    assert percent(recall.value) in page
    assert "<small>0 of 0" not in page
    assert "the certificate&#39;s: means over clusters" in page
    stops = json.loads(page.split('id="setpoint-stops">')[1].split("</script>")[0])["views"][0]
    (point,) = found.points
    shown = stops["stops"][stops["start"]]
    assert shown["errors"][0] == point.positives - point.true_alerts


def test_labels_below_a_logarithmic_axis_do_not_touch():
    for level in (0.0001, 0.001, 0.002, 0.01, 0.05):
        scale = logarithmic(level / 20, level * 10)
        places = [(342 * scale.place(value), 7 * len(text)) for value, text in scale.ticks]
        assert len(places) >= 4
        assert any(value == pytest.approx(level) for value, _ in scale.ticks)
        for (x, wide), (y, broad) in pairwise(places):
            assert y - x >= (wide + broad) / 2
