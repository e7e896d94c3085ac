"""The page as text: what it says, and that a user's words stay words."""

import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pytest
from reports.sample import HOSTILE, certificate, draw, result

from setpoint import certify
from setpoint.rates import fpr, recall
from setpoint.reports import page, report
from setpoint.reports.explorer import _moved, costs_of
from setpoint.reports.svg import BOTTOM, TOP, Plot, linear
from setpoint.reports.text import clip, name, percent
from setpoint.reports.wording import bounds_in_words
from setpoint.results import Findings
from setpoint.results.measured import Margins, clopper_pearson
from setpoint.results.points import operating_points


def test_the_cost_of_a_thousand_cases():
    run = result(costs=(500.0, 5.0))
    found = Findings(run)
    scores, y, _ = run.splits["test"]
    (point,) = operating_points(Margins(scores, 2.4), y, [2.4])
    cost = 500 * (y & (scores <= 2.4)).sum() + 5 * (~y & (scores > 2.4)).sum()
    value, interval = costs_of(found, point)
    assert value == f"{1000 * cost / len(y):,.0f}"
    low, high = (float(end.replace(",", "")) for end in interval.split(" to "))
    assert low < 1000 * cost / len(y) < high


class Reader(html.parser.HTMLParser):
    """Collects tags and text, and complains about what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], "", []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, name, attrs):
        self.tags.append(name)
        self.attributes += attrs
        if name not in ("meta", "link", "br", "input"):
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += "" if self.open[-1:] in (["script"], ["style"]) else data


@pytest.fixture(scope="module")
def shown():
    return page(result())


def block(text):
    (found,) = re.findall(
        r'<script type="application/json" id="setpoint-report">(.*?)</', text, re.S
    )
    return json.loads(found)


def test_the_banner_says_it_in_words(shown):
    text = Reader(shown).text
    assert "Certified" in text
    said = "At most 1 in 50 non-fraud cases is flagged: proved with 95 % confidence"
    assert f"<h1>{said}</h1>" in re.sub("</?bdi>", "", shown)
    assert f"<title>{said}</title>" in shown
    assert "Goal: maximize recall subject to fpr ≤ 0.02" in text
    assert "asked ≤ 2 %, proved ≤ 1.91 %" in text
    assert "2.4" in text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("not certified", "Not proved with 95 % confidence: at most 1 in 50 non-fraud cases is"),
        ("infeasible", "Too few cases to prove that at most 1 in 50 non-fraud cases is flagged"),
    ],
)
def test_bad_news_comes_with_its_reason_and_its_remedy(status, words):
    bad = certificate(status, notes=["needs 2,995 negatives, you have 800"], advice=["more data"])
    text = Reader(page(result(certificate=bad, threshold=None, baseline=None))).text
    assert words in text
    assert "Needs 2,995 negatives, you have 800." in text
    assert "What would change this: more data" in text
    assert "Does it hold?" not in text
    assert "Nothing is certified: these are measurements" in text
    assert "✓ Certified" not in text


def test_without_a_certificate_nothing_is_promised():
    text = Reader(page(result(certificate=None))).text
    assert "Measured, not certified" in text
    assert "Measured, not proved: at most 1 in 50" in text


def test_test_data_that_contradict_the_certificate_are_not_passed_over():
    assert "contradict" not in Reader(page(result())).text
    text = Reader(page(result(threshold=0.0))).text
    assert "proved with 95 % confidence, but the test data contradict it" in text
    assert "Certified, but" in text


def test_a_mean_guarantee_is_not_sold_as_confidence():
    text = Reader(page(result(certificate=certificate(guarantee="mean")))).text
    assert "on average over calibration samples" in text
    assert "with 95 % confidence" not in text


def test_every_part_is_there_with_its_numbers(shown):
    text = Reader(shown).text
    s, y, g = draw(1500, 3)
    accepted = s > 2.4
    for words in (
        *("Does it hold?", "Curves at the operating point", "If the threshold moved"),
        *("Compared with the usual way", "Groups", "Training", "What this rests on"),
        f"{100 * accepted[y].mean():.1f} %",
        f"{accepted[~y].sum()} of {(~y).sum():,}",
        f"{accepted[y & (g == 'a')].sum()} of {(y & (g == 'a')).sum()}",
        f"{1000 * accepted.mean():.1f}",
        *("paired bootstrap", "setpoint 0.1.0", "2 columns used", "income"),
    ):
        assert words in text, words


def test_the_json_block_has_the_same_numbers(shown):
    data = block(shown)
    s, y, _ = draw(1500, 3)
    (test,) = [row for row in data["splits"] if row["name"] == "test"]
    assert test["recall"]["count"] == int((s > 2.4)[y].sum())
    assert data["threshold"] == 2.4
    assert data["status"] == "certified"
    assert data["seed"] == 3


def test_it_loads_nothing_and_runs_one_script_of_ours(shown):
    reader = Reader(shown)
    assert reader.tags.count("script") == 3  # two blocks of JSON, and ours
    assert not {"img", "iframe", "object", "embed", "base", "form"} & set(reader.tags)
    for key, value in reader.attributes:
        assert not key.startswith("on")
        assert key not in ("src", "action")
        assert key != "href" or value == "data:,"
    policies = [value for key, value in reader.attributes if key == "content"]
    assert policies[0].startswith("default-src 'none'; ")
    (code,) = re.findall(r"<script>(.*?)</script>", shown, re.S)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert policies[0].endswith(f"; script-src 'sha256-{digest}'")
    style = shown[shown.index("<style>") : shown.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert re.findall(r"https?://", shown) == []


def test_it_can_be_read_by_a_screen_reader(shown):
    reader = Reader(shown)
    assert reader.tags.count("h1") == 1
    cells = re.findall(r"<th\b[^>]*>", shown)
    assert cells
    assert all('scope="' in cell for cell in cells)
    pictures = re.findall(r"<svg\b[^>]*>(.{0,200})", shown, re.S)
    assert len(pictures) == 10  # two of them of single groups, hidden until they are chosen
    assert all(inside.startswith("<title") for inside in pictures)
    ids = [value for key, value in reader.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert ("lang", "en") in reader.attributes


def test_training_rows_are_not_judged_and_groups_come_first_with_a_picture(shown):
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>.*?<span class="says ([a-z]*)">', shown, re.S)
    judged = {name for name, said in rows if said}
    assert {"train", "validation"} <= {name for name, _ in rows}
    assert judged == {"calibration", "test"}
    sections = re.findall(r'<section id="(\w+)">(.*?)</section>', shown, re.S)
    name, text = sections[0]
    assert name == "groups"
    assert text.count("<svg") == 2


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_words_are_text_wherever_they_come_from(bad):
    splits = {"test": (*draw(300, 0)[:2], np.array([bad.replace("\x00", ""), "b"] * 150))}
    shown = page(
        result(
            splits=splits,
            baseline={"test": splits["test"][:2]},
            **dict.fromkeys(("label", "positive", "method", "model", "created"), bad),
            **dict.fromkeys(("baseline_name", "group", "negative", "action"), bad),
            versions={bad: bad},
            columns=[bad],
            notes=[bad],
            history=[{"epoch": 0, bad: 1.0}, {"epoch": 1, bad: 2.0}],
            certificate=certificate(notes=[bad], advice=[bad], assumptions=[bad]),
        )
    )
    shown.encode("utf-8")
    reader = Reader(shown)
    assert reader.tags.count("script") == 3
    assert "img" not in reader.tags
    assert not [key for key, _ in reader.attributes if key.startswith("on")]
    assert bad[:15].replace("\x00", "\ufffd") in reader.text
    assert block(shown)["columns"] == [bad]


def test_a_group_may_have_its_own_threshold():
    shown = page(result(threshold={"a": 2.3, "b": 2.5}))
    text = Reader(shown).text
    assert "Threshold per group" in text
    assert "score minus the threshold of the group" in text
    assert block(shown)["threshold"] == {"a": 2.3, "b": 2.5}


@pytest.mark.parametrize(
    "goal",
    [
        "fpr <= 0.02",
        "precision >= 0.9 and recall >= 0.3",
        "maximize precision subject to recall >= 0.5",
        "maximize recall subject to coverage <= 0.1",
        "maximize f_score(1)",
        "minimize fnr subject to fpr at 0.01",
        'minimize error subject to abs(tpr on group="a" - tpr on group="b") <= 0.1',
        "minimize 0.5 fpr + 0.5 fnr subject to fpr <= 0.2",
        "maximize tpr over fpr in [0, 0.05] with 5 thresholds",
    ],
)
def test_every_kind_of_goal_has_a_page(goal):
    shown = page(result(goal=goal, certificate=None))
    Reader(shown)
    block(shown)


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([0.5], [1]),
        ([0.5], [0]),
        ([0.0] * 9, [0, 1, 0] * 3),
        ([1e30, -1e30, 0.0], [1, 0, 1]),
        ([1e-30, 2e-30, 0.0], [1, 0, 1]),
    ],
)
@pytest.mark.parametrize("threshold", [None, 0.0, -np.inf, 1e30])
def test_degenerate_data_have_a_page(scores, labels, threshold):
    part = (np.array(scores), np.array(labels))
    shown = page(result(splits={"test": part}, baseline=None, threshold=threshold, history=[]))
    Reader(shown)
    block(shown)
    assert "nan" not in re.sub(r"<style>.*?</style>", "", shown, flags=re.S).lower()


def test_half_a_million_cases_make_no_larger_page():
    big = page(result(splits={"test": draw(500_000, 0)}, baseline=None))
    assert len(big) < 240_000  # with thresholds to move for everyone and for two groups


def test_the_same_run_gives_the_same_page(shown):
    assert page(result()) == shown


def test_users_words_are_escaped_where_text_is_made():
    bad = '<a b="c">&\x00\ud800'
    assert name(bad) == "<bdi>&lt;a b=&#34;c&#34;&gt;&amp;\ufffd\ufffd</bdi>"
    assert clip("x" * 200, 10) == "x" * 9 + "…"
    words = bounds_in_words([fpr <= 0.01, recall >= 0.5], result(positive=bad, action=bad))
    assert words.startswith("at most 1 in 100 non-<bdi>&lt;a b=")
    assert "<a" not in words


def test_the_json_block_cannot_be_closed_by_its_data():
    shown = page(result(columns=["</script>", "<!--"]))
    for inside in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', shown, re.S):
        assert "<" not in inside
    assert block(shown)["columns"] == ["</script>", "<!--"]


def test_neither_torch_nor_matplotlib_is_needed(fresh_python):
    script = "import sys, setpoint.reports; print({'torch', 'matplotlib'} & set(sys.modules))"
    assert fresh_python(script) == "set()"


def test_f_scores_and_gaps_come_with_intervals():
    goal = 'f_score(1) >= 0.5 and abs(tpr on group="a" - tpr on group="b") <= 0.5'
    text = Reader(page(result(goal=goal))).text
    data = block(page(result(goal=goal)))
    row = data["splits"][-1]
    for bound in row["bounds"]:
        low, high = bound["interval"]["low"], bound["interval"]["high"]
        assert low < bound["value"] < high
    score, gap = ([b["interval"]["low"], b["interval"]["high"]] for b in row["bounds"])
    assert "{:.1f} % to {:.1f} %".format(*(100 * end for end in score)) in text
    assert "{:.3g} to {:.3g} points".format(*(100 * end for end in gap)) in text
    assert text.count("✓ holds") == text.count("✓ proved") == 2  # on test, calibration rows
    gap = re.search(r"recall: ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text)
    assert float(gap[2]) <= float(gap[1]) <= float(gap[3])


def test_areas_are_compared_pairwise():
    goal = "maximize tpr over fpr in [0, 0.05] with 5 thresholds"
    text = Reader(page(result(goal=goal, threshold=None, certificate=None))).text
    assert "The area on test data (maximize tpr over fpr in [0, 0.05]" in text
    assert re.search(r"points for Implicit \(\S+ to \S+, paired bootstrap, \d+ draws\)", text)


def test_ticks_are_round_numbers():
    shares = [text for _, text in linear(0, 1, shares=True).ticks]
    assert shares == ["0", "20 %", "40 %", "60 %", "80 %", "100 %"]
    assert [text for _, text in linear(0, 30).ticks] == ["0", "10", "20", "30"]


def test_a_vertical_line_goes_from_edge_to_edge():
    plot = Plot(linear(0, 1), linear(0, 1), "x", "a line", "", height=200)
    plot.upright(0.5, "here")
    (line,) = (mark for mark in plot.marks if mark[0] == "line")
    assert (float(line[1]["y1"]), float(line[1]["y2"])) == (TOP, 200 - BOTTOM)


def test_no_nan_where_nobody_is_flagged():
    """Above the highest score precision is 0/0."""
    scores, labels, _ = draw(500, 0)
    nobody, some, start = operating_points(Margins(scores, 2.4), labels, [3.0, 2.4, 99.0])
    told = _moved(nobody, start)
    assert "nan" not in told
    assert "precision" not in told
    assert "precision" in _moved(some, start)


def test_a_value_has_its_place_between_the_ends_of_an_axis():
    axis = linear(2, 4)
    assert [axis.place(value) for value in (2, 3, 4)] == [0, 0.5, 1]
    alone = linear(5, 5)
    assert (alone.low, alone.high) == (2.5, 7.5)


def test_page_and_terminal_show_the_same_interval_and_the_proof_is_called_one():
    scores, labels, _ = draw(3000, 5)
    certificate = certify(scores, labels, "maximize recall subject to fpr <= 0.05")
    (estimate,) = certificate.objective
    text = Reader(report(scores, labels, certificate)).text
    shown = f"{percent(estimate.low)} to {percent(estimate.high)}"
    assert text.count(shown) >= 4  # the tile, the movable threshold, its table, "does it hold?"
    alone = clopper_pearson(certificate.points[0].true_alerts, certificate.points[0].positives)
    assert f"{percent(alone.low)} to {percent(alone.high)}" not in text
    assert "✓ proved" in text
    assert "within, unproven" not in text
