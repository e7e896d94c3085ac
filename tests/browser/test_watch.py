"""The page of a monitor in a real browser."""

import numpy as np
import pytest

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
