"""The page of three-way decisions: every number as numpy counts it, hostile words only as text."""

import json
import re

import numpy as np
import pytest
from cli.shell import run
from reports.sample import HOSTILE
from scipy.stats import beta

from setpoint.certificates import certify_three_way
from setpoint.reports import report


def draw(n=8000, seed=0):
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.3
    days = np.datetime64("2026-03-01") + np.arange(n) // 400
    return random.normal(size=n) + 3 * y, y, np.array(["web", "shop"])[np.arange(n) % 2], days


def numbers(page):
    return json.loads(page.split('id="setpoint-report">')[1].split("</script>")[0])


@pytest.fixture(scope="module")
def found():
    scores, labels, *_ = draw()
    return certify_three_way(scores, labels, "precision >= 0.95", "npv >= 0.97")


def test_counts_shares_and_costs_are_those_of_numpy(found):
    s, y, groups, days = draw(seed=1)
    page = report(s, y, found, groups={"channel": groups}, times=days, costs=(500.0, 5.0))
    told = numbers(page)
    masks = {"accept": s > found.upper, "reject": s <= found.lower}
    masks["review"] = ~masks["accept"] & ~masks["reject"]
    for row in told["decisions"]:
        mine = masks[row["decision"]]
        assert (row["cases"]["count"], row["cases"]["total"]) == (mine.sum(), 8000)
        assert row["positives"]["value"] == pytest.approx(y[mine].mean())
        tail = beta.ppf([0.025], mine.sum(), 8000 - mine.sum() + 1)
        assert row["cases"]["interval"]["low"] == pytest.approx(tail[0])
    precision, npv = (each["measured"]["value"] for each in told["bounds"])
    assert precision == pytest.approx(y[masks["accept"]].mean())
    assert npv == pytest.approx((~y[masks["reject"]]).mean())
    paid = 500 * (masks["reject"] & y).sum() + 5 * (masks["accept"] & ~y).sum()
    assert told["cost"]["value"] == pytest.approx(paid / 8000)
    assert told["days"] == 20
    assert f"<dt>Cost a day</dt><dd>{paid / 20:,.0f}<" in page
    assert f"<dt>Reviews a day</dt><dd>{masks['review'].sum() / 20:,.1f}<" in page
    shop = masks["review"] & (groups == "shop")
    assert told["groups"]["shop"][1]["cases"]["count"] == shop.sum()
    assert len(told["periods"]) == 20
    assert "Measured on these data" in page
    assert "Measured on calibration data" in report(*draw()[:2], found)


def test_the_heading_says_both_promises_in_the_words_of_the_task(found):
    s, y, *_ = draw()
    title = re.search("<title>(.*)</title>", report(s, y, found)).group(1)
    assert title == (
        "At least 95 in 100 accepted cases are positive and at least 97 in 100 rejected cases are "
        "not positive: proved with 95 % confidence"
    )
    page = report(s, y, found, positive="fraud", action="block")
    assert "At least 95 in 100 blocked cases are fraud and at least 97 in 100 left alone" in page
    never = certify_three_way(s, y, "precision >= 0.99999", "npv >= 0.97")
    page = report(s, y, never)
    assert "Too few cases to prove that" in page
    assert numbers(page)["decisions"] == []


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_words_are_text(found, bad):
    s, y, *_ = draw()
    groups = {bad: np.array([bad.replace("\x00", ""), "b"] * 4000)}
    words = dict.fromkeys(("label", "positive", "negative", "action"), bad)
    page = report(s, y, found, groups=groups, notes=[bad], **words)
    page.encode("utf-8")
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "<svg onload" not in page


def test_from_a_shell(found, tmp_path, capsys):
    s, y, groups, days = draw()
    lines = [f"{a},{int(b)},{g},{d}" for a, b, g, d in zip(s, y, groups, days, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["s,y,g,day", *lines]))
    columns = ("--score", "s", "--label", "y")
    sides = ("--accept", "precision >= 0.95", "--reject", "npv >= 0.97")
    made = ("--page", tmp_path / "p.html", "--out", tmp_path / "c.json", "--time", "day")
    assert run("certify", tmp_path / "s.csv", *columns, *sides, *made, "--group", "g") == 0
    capsys.readouterr()
    told = numbers((tmp_path / "p.html").read_text())
    assert (told["upper"], told["lower"], told["days"]) == (found.upper, found.lower, 20)
    given = ("--certificate", tmp_path / "c.json", "--out", tmp_path / "q.html")
    assert run("report", tmp_path / "s.csv", *columns, *given) == 0
    assert numbers((tmp_path / "q.html").read_text())["decisions"] == told["decisions"]
    capsys.readouterr()
    for option in (("--latest", "9"), ("--prevalence", "0.1")):
        assert run("certify", tmp_path / "s.csv", *columns, *sides, *option) == 2
        assert f"{option[0]} goes with --goal" in capsys.readouterr().err


def test_of_clusters_the_page_counts_the_rows_that_the_certificate_rests_on():
    random = np.random.default_rng(0)
    customer = np.repeat(np.arange(3000), 1 + np.arange(3000) % 3)
    y = (random.random(3000) < 0.3)[customer]
    s = random.normal(size=len(y)) + 3 * y
    found = certify_three_way(s, y, "precision >= 0.9", "npv >= 0.9", clusters=customer)
    page = report(s, y, found, clusters=customer, groups=np.where(y, "a", "b"))
    assert "Measured on calibration data" in page
    assert {row["cases"]["total"] for row in numbers(page)["decisions"]} == {3000}
    assert "The 3,000 clusters are independent draws" in page


def test_labels_of_thresholds_near_the_edge_stay_in_the_plot():
    random = np.random.default_rng(0)
    y = random.random(6000) < 0.3
    s = 1 / (1 + np.exp(-random.normal(size=6000) - 6 * (y - 0.5)))
    page = report(s, y, certify_three_way(s, y, "precision >= 0.97", "npv >= 0.8"))
    plot = re.search("<svg.*?</svg>", page, re.S).group()
    tags = re.findall(
        '<text x="([0-9.]+)" y="([0-9.]+)" text-anchor="(start|end)"[^>]*>([^<]*)<', plot
    )
    x, _, anchor, _ = next(tag for tag in tags if tag[3] == "Accepted →")
    assert anchor == "end"
    assert float(x) <= 420
    assert len({height for _, height, _, text in tags if text in ("Accepted →", "Rejected")}) == 2
