"""The page of a monitor."""

import json
import re

import numpy as np
import pytest

from setpoint.certificates import certify
from setpoint.reports.watch_page import MARK, watch_page

HOSTILE = '"><script>alert(1)</script>'


def rows(n, seed, shift=0.0):
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.2
    return random.normal(size=n) + 2 * labels + shift, labels


@pytest.fixture(scope="module")
def certificate():
    return certify(*rows(5000, 0), "fpr <= 0.05")


def days(monitor, count, shift=0.0):
    for day in range(count):
        scores, labels = rows(400, day + 1, shift)
        monitor.update(scores, labels, times=np.full(400, np.datetime64("2024-05-01") + day))
    return monitor


def test_it_shows_the_verdict_pictures_and_what_to_do(certificate):
    page = watch_page(days(certificate.monitor(reference=rows(5000, 0)[0]), 12, 0.6))
    assert "✗ Broken" in page
    assert "where fpr ≤ 0.05 was certified" in page
    assert "recalibrate" in page
    assert page.count("<svg") == 4  # rate, evidence, alerts, scores
    assert page.count("<script") == 1
    assert MARK.decode() in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_its_numbers_are_in_it(certificate):
    monitor = days(certificate.monitor(), 4)
    page = watch_page(monitor)
    found = re.search(r'id="setpoint-watch">(.*?)</script>', page, re.S).group(1)
    told = json.loads(found)
    assert told["metrics"] == monitor.metrics()
    assert len(told["periods"]) == 4


def test_empty_quiet_and_drifting_monitors_have_pages(certificate):
    assert "Rows" in watch_page(certificate.monitor())
    assert "✓ Holds" in watch_page(days(certificate.monitor(), 3))
    drifting = certificate.monitor(watch=["alerts", "scores"])
    for seed in range(6):
        drifting.update(rows(1000, seed, 0.5)[0])
    assert "Drifting" in watch_page(drifting)
    assert "labels alone can tell" in watch_page(drifting)
    assert "Label some recent rows" in watch_page(drifting)


def test_rows_with_labels_need_no_others(certificate):
    drifting = certificate.monitor()
    while drifting:
        scores, labels = rows(500, drifting.updates)
        drifting.update(scores - 0.3 * ~labels.astype(bool), labels)
    assert drifting.verdict == "drifting"
    assert "Label some recent rows" not in watch_page(drifting)


def test_words_of_users_are_text(certificate):
    scores, labels = rows(8000, 0)
    group = np.where(np.arange(8000) % 2, HOSTILE, "b")
    named = certify(scores, labels, "fpr <= 0.1", groups={"g": group})
    monitor = named.monitor(features=[HOSTILE])
    features = {HOSTILE: np.arange(8000.0)}
    monitor.update(scores + 1, labels, groups={"g": group}, features=features)
    page = watch_page(monitor)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_the_measured_rate_of_a_day_is_drawn_in_the_middle_of_its_interval(certificate):
    page = watch_page(days(certificate.monitor(), 6))
    plot = next(svg for svg in re.findall("<svg.*?</svg>", page, re.S) if "<circle" in svg)
    boxes = [tag for tag in re.findall("<rect[^>]*>", plot) if 'class="box"' in tag]
    middles = [number(tag, "x") + number(tag, "width") / 2 for tag in boxes]
    dots = [number(tag, "cx") for tag in re.findall("<circle[^>]*>", plot)]
    assert len(dots) == len(middles) == 6
    assert dots == pytest.approx(middles, abs=0.2)


def test_the_same_scores_then_and_now_are_drawn_one_above_the_other(certificate):
    reference = rows(5000, 0)[0]
    monitor = certificate.monitor(reference=reference)
    monitor.update(reference, times=np.zeros(5000))
    plot = next(s for s in re.findall("<svg.*?</svg>", watch_page(monitor), re.S) if "then" in s)
    bars = [tag for tag in re.findall("<rect[^>]*>", plot) if "bar-negative" in tag]
    tops = {round(number(tag, "x"), 1): number(tag, "y") for tag in bars}
    path = re.search('<path d="M([^"]*)" class="curve ours"', plot)[1].replace("H", " H").split()
    drawn = dict(re.findall(r"H([\d.]+)V([\d.]+)", "".join(path[1:])))
    drawn = {float(x): float(y) for x, y in drawn.items()}
    high = [x for x, y in tops.items() if y < 100]
    assert len(high) > 3
    assert [drawn[x] for x in high if x in drawn] == [tops[x] for x in high if x in drawn]
    assert sum(x in drawn for x in high) > 3


def number(tag, name):
    return float(re.search(f' {name}="([^"]*)"', tag)[1])
