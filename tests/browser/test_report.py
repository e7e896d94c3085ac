"""The report page in a real browser."""

import struct

import numpy as np
import pytest
from reports.class_sample import class_result
from reports.sample import HOSTILE, certificate, draw, result

from setpoint.reports import page

pytestmark = pytest.mark.browser
WIDTHS = (1280, 390)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "report.html"
    path.write_text(page(result()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Every word a user can choose, chosen by an attacker."""
    odd = [word.replace("\x00", "") for word in HOSTILE]
    s, y, _ = draw(300, 0)
    word = " ".join(odd[:3]) + odd[4]
    run = result(
        splits={"test": (s, y, np.array(odd * 60))},
        baseline={"test": (s, y)},
        **dict.fromkeys(("label", "positive", "method", "model", "created"), word),
        **dict.fromkeys(("baseline_name", "group"), odd[3]),
        **dict.fromkeys(("negative", "action"), odd[4] + odd[2]),
        versions={word: word},
        columns=list(HOSTILE),
        notes=list(HOSTILE),
        history=[{"epoch": i, word: float(i), odd[3]: 1.0} for i in range(3)],
        certificate=certificate(notes=odd, advice=odd, assumptions=odd),
    )
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    path.write_text(page(run), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """A run for several classes, one of them called by an attacker."""
    odd = HOSTILE[2] + HOSTILE[3]
    run = class_result(classes=(odd, "dog", "bird"), goal="maximize macro(recall)")
    path = tmp_path_factory.mktemp("classes") / "report.html"
    path.write_text(page(run), encoding="utf-8")
    return path


@pytest.fixture(params=["plain", "hostile", "classes"])
def path(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_asks_for_nothing_and_complains_about_nothing(browser, path, width, dark):
    browser.open(path, width=width, dark=dark)
    assert browser.requests() == [path.as_uri()]
    assert browser.complaints() == []


def test_the_watch_over_requests_and_complaints_is_awake(browser, tmp_path):
    """A page that does load and does fail, so that the test above can be believed."""
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://localhost:9/x.png'><script>console.error(1); oh.no</script>")
    browser.open(bad)
    assert "http://localhost:9/x.png" in browser.requests()
    assert len(browser.complaints()) >= 2


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_sideways(browser, path, width):
    browser.open(path, width=width)
    assert browser.js("document.documentElement.scrollWidth") == width


def test_hostile_words_appear_as_text(browser, hostile):
    browser.open(hostile)
    assert browser.js("document.querySelectorAll('script').length") == 3
    assert browser.js("document.querySelectorAll('img, [onload], [onerror]').length") == 0
    text = browser.js("document.body.textContent")
    assert all(word[:20].replace("\x00", "\ufffd") in text for word in HOSTILE)
    parsed = "JSON.parse(document.getElementById('setpoint-report').textContent).columns.length"
    assert browser.js(parsed) == len(HOSTILE)


def test_words_stand_out_from_the_paper_in_light_and_dark(browser, plain):
    """WCAG AA: a contrast of at least 4.5 for every piece of text."""
    for dark in (False, True):
        browser.open(plain, dark=dark)
        found = browser.js(CONTRAST)
        assert found["count"] > 100
        assert found["worst"] >= 4.5, found


def test_dark_is_dark(browser, plain):
    shades = []
    for dark in (False, True):
        browser.open(plain, dark=dark)
        shades.append(browser.js("getComputedStyle(document.body).backgroundColor"))
    assert shades == ["rgb(255, 255, 255)", "rgb(20, 24, 28)"]


def test_pictures_can_be_read_on_a_phone(browser, plain):
    browser.open(plain, width=390)
    sizes = browser.js(
        "[...document.querySelectorAll(':not([hidden]) > svg')]"
        ".map(s => s.getBoundingClientRect().width / 420 * 12)"
    )
    assert min(sizes) >= 9


def test_every_picture_keeps_its_words_inside(browser, plain):
    browser.open(plain)
    outside = browser.js("""[...document.querySelectorAll('svg text')].filter(t => {
        const box = t.getBoundingClientRect(), all = t.closest('svg').getBoundingClientRect();
        return box.left < all.left - 1 || box.right > all.right + 12 || box.bottom > all.bottom + 2;
    }).map(t => t.textContent)""")
    assert outside == []


def test_it_prints(browser, plain):
    browser.open(plain, dark=True)  # paper is white all the same
    assert browser.pdf().startswith(b"%PDF")


def test_a_screenshot_shows_more_than_paper(browser, plain):
    browser.open(plain)
    png = browser.screenshot(whole=False)
    assert struct.unpack(">II", png[16:24]) == (1280, 900)
    assert len(png) > 20_000


CONTRAST = """(() => {
  const shade = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.map(v => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = e => { for (; e; e = e.parentElement) {
    const c = shade(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  let worst = 99, count = 0, where = '';
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || e.closest('script, title, desc')) continue;
    const style = getComputedStyle(e), ink = e.closest('svg') ? style.fill : style.color;
    const [a, b] = [light(shade(ink)), light(paper(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    count += 1;
    if (ratio < worst) { worst = ratio; where = walk.currentNode.data; }
  }
  return {worst, count, where};
})()"""
