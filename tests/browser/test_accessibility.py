"""The pages by axe-core, the usual checker of accessibility."""

import json

import numpy as np
import pytest
from reports.class_sample import class_result
from reports.sample import certificate, draw, result

from setpoint.certificates import certify_three_way
from setpoint.reports import page, report

pytestmark = pytest.mark.browser
TIMES = np.datetime64("2026-01-01") + np.arange(1500) // 20
CHECKS = [
    {
        "when": f"2026-0{month}-01T00:00:00+00:00",
        "file": "new.csv",
        "verdict": "ok",
        "examples": 100,
        "findings": [{"name": "fpr <= 0.02", "measured": 0.01}],
    }
    for month in (1, 2, 3)
]
PAGES = {
    "certified": lambda: page(result(times=TIMES, costs=(500.0, 5.0), checks=CHECKS)),
    "infeasible": lambda: page(
        result(certificate=certificate("infeasible"), threshold=None, baseline=None)
    ),
    "contradicted": lambda: page(result(threshold=0.0)),
    "classes": lambda: page(class_result()),
    "three-way": lambda: three_way(),
    "per group": lambda: page(result(threshold={"a": 2.3, "b": 2.5})),
}


def three_way():
    scores, labels, groups = draw(3000, 0)
    found = certify_three_way(scores, labels, "precision >= 0.9", "npv >= 0.95")
    times = np.datetime64("2026-01-01") + np.arange(3000) // 40
    return report(scores, labels, found, groups={"g": groups}, times=times, costs=(500.0, 5.0))


def violations(browser, axe, without=(), rules=None):
    """What axe finds on the page, ``without`` some of its parts, or by some ``rules`` alone."""
    browser.js(f"if (!self.axe) {{ {axe} }}; undefined")
    options = {"resultTypes": ["violations"], "rules": rules or {}}
    given = f"{json.dumps({'exclude': list(without)})}, {json.dumps(options)}"
    found = browser.js(f"axe.run({given}).then(r => JSON.stringify(r.violations))")
    return [
        (rule["id"], [node["html"][:120] for node in rule["nodes"][:3]])
        for rule in json.loads(found)
    ]


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(browser, axe, tmp_path, kind, dark):
    path = tmp_path / "report.html"
    path.write_text(PAGES[kind](), encoding="utf-8")
    for width in (1280, 390):
        browser.open(path, width=width, dark=dark)
        assert violations(browser, axe) == []


def test_axe_is_awake(browser, axe, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<html><body><input><p style='color:#ccc'>pale</p></body></html>")
    browser.open(bad)
    assert {"color-contrast", "html-has-lang", "label"} <= {i for i, _ in violations(browser, axe)}


def test_tables_that_do_not_fit_a_phone_show_it_and_scroll(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(result(times=TIMES)), encoding="utf-8")
    browser.open(path, width=390, height=844)
    found = browser.js("""[...document.querySelectorAll('.scroll')].map(box => {
        box.scrollLeft = 60;
        const style = getComputedStyle(box), first = box.querySelector("tbody th");
        return {
            wide: box.scrollWidth > box.clientWidth + 1,
            scrolled: box.scrollLeft,
            cues: style.backgroundImage.split("linear-gradient").length - 1,
            attachments: style.backgroundAttachment,
            name: first.getBoundingClientRect().left - box.getBoundingClientRect().left,
            focus: box.tabIndex, label: box.getAttribute("aria-label"),
        }; })""")
    wide = [box for box in found if box["wide"]]
    assert len(wide) >= 4
    for box in wide:
        assert box["scrolled"] == 60
        assert box["cues"] == 4  # a shadow at either edge, and what covers it at the ends
        assert box["attachments"] == "local, local, scroll, scroll"
        assert box["name"] == pytest.approx(0, abs=1)  # the first column stays
        assert box["focus"] == 0
        assert box["label"] != "table"
