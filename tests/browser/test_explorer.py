"""The threshold that moves, in a real browser: what is shown is what numpy counts."""

import numpy as np
import pytest
from scipy.stats import beta

from setpoint import Problem, certify
from setpoint.certificates import certify_groups
from setpoint.reports import report

pytestmark = pytest.mark.browser
SURE, COSTS = 0.95, (500.0, 5.0)


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    labels = random.random(30_000) < 0.05
    return random.normal(size=30_000).round(3) + 3 * labels, labels


@pytest.fixture(scope="module")
def certificate(rows):
    return certify(*(column[:15_000] for column in rows), "fpr <= 0.02")


@pytest.fixture(scope="module")
def new(rows):
    return tuple(column[15_000:] for column in rows)


@pytest.fixture(scope="module")
def path(tmp_path_factory, new, certificate):
    found = tmp_path_factory.mktemp("explorer") / "report.html"
    found.write_text(report(*new, certificate, costs=COSTS, positive="fraud"), encoding="utf-8")
    return found


READ = """(() => {
  const box = document.getElementById("explorer");
  const rows = [...box.querySelectorAll("[data-figure], [data-cost]")];
  return {
    badge: box.querySelector(".badge").textContent,
    state: box.querySelector(".badge").className,
    threshold: box.querySelector("[data-threshold]").textContent,
    at: box.querySelector("input[type=range]").value,
    spoken: box.querySelector("input[type=range]").getAttribute("aria-valuetext"),
    line: +box.querySelector(".scores:not([hidden]) line.threshold").getAttribute("x1"),
    cells: rows.map(row => [...row.children].map(part => part.textContent)),
  };
})()"""
ALL = """(() => {
  const slider = document.querySelector("#explorer input[type=range]"), found = [];
  for (let i = 0; i <= +slider.max; i++) {
    slider.value = i;
    slider.dispatchEvent(new Event("input"));
    found.push(READ);
  }
  return found;
})()""".replace("READ", READ)
THRESHOLDS = "JSON.parse(document.getElementById('setpoint-stops').textContent).views[0].stops"


def interval(count, total, sure=SURE):
    tail = (1 - sure) / 2
    low = 0.0 if count == 0 else beta.ppf(tail, count, total - count + 1)
    return low, 1.0 if count == total else beta.isf(tail, count + 1, total - count)


def close(text, value, size=1.0):
    """Whether a shown number is the value, to the last digit that is shown."""
    digits = text.removesuffix(" %").replace(",", "")
    if "e-" in digits:
        return float(digits) == pytest.approx(value, rel=0.06)
    step = 10.0 ** -len(digits.partition(".")[2])
    return abs(float(digits) - size * value) <= 0.5001 * step


def test_every_stop_shows_what_numpy_counts(browser, path, new, certificate):
    scores, labels = new
    browser.open(path)
    stops, shown = browser.js(THRESHOLDS), browser.js(ALL)
    assert 100 < len(shown) == len(stops) <= 200
    certified = []
    for stop, seen in zip(stops, shown, strict=True):
        misses, alarms = stop["errors"][:2]
        cut = stop["cut"]
        assert seen["threshold"] == f"{cut:.5g}".replace("-", "\u2212")
        above = scores > cut
        assert (~above & labels).sum() == misses
        assert (above & ~labels).sum() == alarms
        alerts, missed, fpr, precision, cost = seen["cells"]
        n, positives = len(scores), int(labels.sum())
        assert close(alerts[0], above.mean(), 1000)
        ends = interval(int(above.sum()), n)
        assert all(close(t, e, 1000) for t, e in zip(alerts[1].split(" to "), ends, strict=True))
        assert missed[0] == f"{misses:,}"
        assert close(missed[1].split(" of ")[0], misses / positives, 100)
        ends = interval(misses, positives)
        assert all(close(t, e, 100) for t, e in zip(missed[2].split(" to "), ends, strict=True))
        for text, count, total in (
            (fpr, alarms, n - positives),
            (precision, positives - misses, int(above.sum())),
        ):
            assert text[2] == f"{count:,} of {total:,}"
            if total:
                assert close(text[0], count / total, 100)
                ends = interval(count, total)
                assert all(
                    close(t, e, 100) for t, e in zip(text[1].split(" to "), ends, strict=True)
                )
        paid = 1000 * (COSTS[0] * misses + COSTS[1] * alarms) / n
        assert close(cost[0], paid)
        both = [interval(count, n, (1 + SURE) / 2) for count in (misses, alarms)]
        ends = [1000 * float(np.dot(COSTS, pair)) for pair in zip(*both, strict=True)]
        assert all(close(t, e) for t, e in zip(cost[1].split(" to "), ends, strict=True))
        certified += [cut] if "certified" in seen["state"].split() else []
        stricter = cut > certificate.threshold
        assert ("holds" in seen["state"].split()) == stricter  # fpr only falls
        assert ("Not certified here" in seen["badge"]) == (cut < certificate.threshold)
        assert seen["threshold"] in seen["spoken"]
    assert certified == [certificate.threshold]
    lines = [seen["line"] for seen in shown]
    assert lines == sorted(lines)


def test_keys_move_it_and_the_badge_says_what_that_costs(browser, path):
    browser.open(path)
    start = browser.js(READ)
    assert start["state"] == "badge certified"
    assert start["badge"].startswith("✓ Certified. At most 1 in 50 non-fraud cases is")
    browser.js("document.querySelector('#explorer input[type=range]').focus()")
    key = {"key": "ArrowLeft", "code": "ArrowLeft", "windowsVirtualKeyCode": 37}
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, **key)
    moved = browser.js(READ)
    assert int(moved["at"]) == int(start["at"]) - 1
    assert moved["state"] == "badge off"
    assert "Against the certified threshold: +" in moved["badge"]
    assert "Costs " in moved["badge"]
    browser.js("document.querySelector('#explorer button').click()")
    assert browser.js(READ) == start


@pytest.mark.parametrize("touch", [False, True], ids=["mouse", "touch"])
def test_the_line_can_be_dragged(browser, path, touch):
    browser.open(path, width=390 if touch else 1280, height=844)
    browser.js("document.querySelector('#explorer svg').scrollIntoView({block: 'center'})")
    start = browser.js(READ)
    box = browser.js("""(() => {
        const r = document.querySelector('#explorer svg').getBoundingClientRect();
        return [r.left, r.top, r.width, r.height]; })()""")
    places = [(box[0] + box[2] * part, box[1] + box[3] / 2) for part in (0.6, 0.7, 0.8)]
    if touch:
        browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
        for kind, place in zip(("touchStart", "touchMove", "touchMove"), places, strict=True):
            points = [{"x": place[0], "y": place[1]}]
            browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    else:
        kinds = ("mousePressed", "mouseMoved", "mouseMoved", "mouseReleased")
        for kind, (x, y) in zip(kinds, [*places, places[-1]], strict=True):
            button = {"button": "left", "buttons": 1, "clickCount": 1}
            browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)
    moved = browser.js(READ)
    assert moved["line"] > start["line"] + 10
    assert moved["line"] == pytest.approx(0.8 * 420, abs=12)
    assert "holds" in moved["state"]


GROUP_GOAL = (
    "minimize error subject to demographic_parity(0.1, sex=[f, m]) with thresholds per group"
)


@pytest.mark.parametrize("goal", [GROUP_GOAL, "fpr <= 5 %", "shared"])
def test_a_single_group_can_be_moved(browser, tmp_path, goal):
    random = np.random.default_rng(1)
    sex = np.where(random.random(9000) < 0.6, "f", "m")
    labels = random.random(9000) < np.where(sex == "f", 0.2, 0.4)
    scores = random.normal(size=9000) + 2 * labels + 0.5 * (sex == "m")
    if goal == GROUP_GOAL:
        half = np.arange(9000) < 4500
        parts = ([c[p] for c in (scores, labels, sex)] for p in (half, ~half))
        found = certify_groups(Problem.parse(goal), *parts, column="sex")
    else:
        groups = None if goal == "shared" else {"sex": sex}
        found = certify(scores, labels, "fpr <= 5 %", groups=groups)
    own = dict.fromkeys("fm", found.threshold) if goal == "shared" else found.thresholds
    path = tmp_path / "groups.html"
    days = np.datetime64("2026-01-01") + np.arange(9000) // 300
    shown = report(scores, labels, found, groups={"sex": sex}, times=days, costs=COSTS)
    path.write_text(shown, encoding="utf-8")
    browser.open(path)
    together = browser.js(READ)
    if goal == GROUP_GOAL:  # the page is about the rows that prove the thresholds, the latest half
        scores, labels, sex, days = (c[4500:] for c in (scores, labels, sex, days))
    for place, group in ((1, "f"), (2, "m")):
        browser.js(f"""(() => {{ const select = document.querySelector("#explorer select");
            select.value = {place}; select.dispatchEvent(new Event("change")); }})()""")
        stops = browser.js(THRESHOLDS.replace("[0]", f"[{place}]"))
        assert 20 < len(stops) <= 41
        s, y = scores[sex == group], labels[sex == group]
        seen = browser.js(READ)
        assert seen["threshold"] == f"{own[group]:.5g}".replace("-", "\u2212")
        assert seen["state"] == ("badge off" if goal == "shared" else "badge certified")
        assert ("not for this group" in seen["badge"]) == (goal == "shared")
        assert "0 to 0" not in seen["badge"]
        states = []
        for stop, moved in zip(stops, browser.js(ALL), strict=True):
            above = s > stop["cut"]
            alerts, missed, fpr, *_ = moved["cells"]
            assert close(alerts[0], above.sum() / len(np.unique(days)))
            assert missed[0] == f"{(~above & y).sum():,}"
            assert fpr[2] == f"{(above & ~y).sum():,} of {(~y).sum():,}"
            assert stop["errors"][:2] == [(~above & y).sum(), (above & ~y).sum()]
            states.append(moved["state"].split()[1])
        assert states.count("certified") == (goal != "shared")
        assert ("holds" in states) == (goal == "fpr <= 5 %")  # a gap has no safe side
        visible = "[...document.querySelectorAll('.scores')].map(each => !each.hidden)"
        assert browser.js(visible) == [place == i for i in range(3)]
    browser.js("""(() => { const select = document.querySelector("#explorer select");
        select.value = 0; select.dispatchEvent(new Event("change")); })()""")
    assert browser.js(READ) == together
    assert browser.complaints() == []
    assert len(shown.encode()) < 300_000


def test_costs_can_be_typed_in(browser, path, new, certificate):
    scores, labels = new
    browser.open(path)
    browser.js("""[...document.querySelectorAll("#explorer input[type=number]")].forEach(
        (field, i) => { field.value = [40, 2][i]; field.dispatchEvent(new Event("input")); })""")
    above = scores > certificate.threshold
    paid = 1000 * (40 * (~above & labels).sum() + 2 * (above & ~labels).sum()) / len(scores)
    assert close(browser.js(READ)["cells"][4][0], paid)


def test_without_scripts_the_page_is_complete(browser, path, tmp_path, new, certificate):
    """The same numbers without the controls; nothing is hidden but them."""
    browser.open(path)
    with_script = browser.js(READ)
    browser.open(path, scripts=False)
    without = browser.js(READ)
    changed = ("at", "spoken")
    assert {k: v for k, v in without.items() if k not in changed} == {
        k: v for k, v in with_script.items() if k not in changed
    }
    hidden = "[...document.querySelectorAll('[hidden]')].map(part => part.className)"
    assert browser.js(hidden) == ["controls"]
    plain = tmp_path / "plain.html"
    plain.write_text(report(*new, certificate, costs=COSTS, script=False), encoding="utf-8")
    browser.open(plain)
    assert browser.js("document.querySelectorAll('input, button').length") == 0
    assert browser.complaints() == []


def test_the_policy_stops_every_other_script(browser, path, tmp_path):
    changed = tmp_path / "changed.html"
    text = path.read_text(encoding="utf-8")
    changed.write_text(text.replace('"use strict";', '"use strict"; window.stolen = 1;'))
    browser.open(changed)
    assert browser.js("window.stolen") is None
    assert browser.complaints()


def test_a_million_rows_make_no_larger_page():
    random = np.random.default_rng(1)
    labels = random.random(1_000_000) < 0.01
    scores = random.normal(size=1_000_000) + 2 * labels
    page = report(scores, labels, certify(scores, labels, "fpr <= 0.01"), costs=COSTS)
    assert len(page.encode()) < 200_000
