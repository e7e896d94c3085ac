"""The page of a monitor in a real browser."""

import numpy as np
import pytest
from browser.test_accessibility import violations

from setpoint.certificates import certify
from setpoint.reports.watch_page import watch_page

pytestmark = pytest.mark.browser
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A monitor with a break, and with a feature called by an attacker."""
    random = np.random.default_rng(0)

    def rows(n, shift=0.0):
        labels = random.random(n) < 0.2
        return random.normal(size=n) + 2 * labels + shift, labels

    calibration = rows(5000)
    certificate = certify(*calibration, "fpr <= 0.05")
    monitor = certificate.monitor(reference=calibration[0], features=[HOSTILE])
    for day in range(40):
        times = np.full(400, np.datetime64("2024-05-01") + day)
        features = {HOSTILE: random.normal(size=400)}
        monitor.update(*rows(400, 0.4 * (day > 20)), times=times, features=features)
    found = tmp_path_factory.mktemp("watch") / "watch.html"
    found.write_text(watch_page(monitor), encoding="utf-8")
    return found


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_loads_nothing_complains_about_nothing_and_stays_inside(browser, path, width, dark):
    browser.open(path, width=width, dark=dark)
    assert browser.requests() == [path.as_uri()]
    assert browser.complaints() == []
    assert browser.js("document.documentElement.scrollWidth") == width
    assert browser.js("document.querySelectorAll('script').length") == 1
    assert "<script>alert(1)" in browser.js("document.body.textContent")


def test_every_picture_keeps_its_words_inside_and_it_prints(browser, path):
    browser.open(path)
    outside = browser.js("""[...document.querySelectorAll('svg text')].filter(t => {
        const box = t.getBoundingClientRect(), all = t.closest('svg').getBoundingClientRect();
        return box.left < all.left - 1 || box.right > all.right + 12 || box.bottom > all.bottom + 2;
    }).map(t => t.textContent)""")
    assert outside == []
    assert browser.pdf().startswith(b"%PDF")


def test_no_line_crosses_the_legend(browser, tmp_path):
    file = tmp_path / "drifting.html"
    file.write_text(watch_page(states()["drifting"]), encoding="utf-8")
    browser.open(file)
    crossed = browser.js("""(() => {
        const plot = [...document.querySelectorAll('svg')].find(s => s.querySelector('.t-ours'));
        const words = [...plot.querySelectorAll('.t-ours, .t-other, .t-third')];
        const bottom = Math.max(...words.map(t => t.getBoundingClientRect().bottom));
        const lines = [...plot.querySelectorAll('path, polyline')].filter(
            l => /\\b(ours|other|third)\\b/.test(l.getAttribute('class')));
        return [words.length, lines.length,
                Math.min(...lines.map(l => l.getBoundingClientRect().top)) >= bottom - 3];
    })()""")
    assert crossed == [3, 3, True]


def states():
    """Monitors that hold, drift without labels, are recalibrated after a break, or are empty."""
    random = np.random.default_rng(1)

    def rows(n, shift=0.0):
        labels = random.random(n) < 0.2
        return random.normal(size=n) + 2 * labels + shift, labels

    certificate = certify(*rows(5000), "fpr <= 0.05")
    found = {name: certificate.monitor() for name in ("empty", "holds", "drifting", "renewed")}
    for day in range(12):
        times = np.full(300, np.datetime64("2024-05-01") + day)
        found["holds"].update(*rows(300), times=times)
        found["drifting"].update(rows(300, 0.6)[0], times=times)
        found["renewed"].update(*rows(300, 0.6), times=times)
        if day == 8:
            found["renewed"].recalibrate(*rows(4000, 0.6))
    assert [each.verdict for each in found.values()] == ["holds", "holds", "drifting", "holds"]
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(browser, axe, path, tmp_path, dark):
    pages = {name: watch_page(monitor) for name, monitor in states().items()}
    for name, page in {**pages, "broken": path.read_text(encoding="utf-8")}.items():
        file = tmp_path / f"{name}.html"
        file.write_text(page, encoding="utf-8")
        for width in (1280, 390):
            browser.open(file, width=width, dark=dark)
            assert (name, width, violations(browser, axe)) == (name, width, [])
