"""The model card says what the report says, and nothing in a user's file can break it."""

import html
import json
import re
from dataclasses import replace

import numpy as np

from setpoint import certify
from setpoint.export import model_card
from setpoint.results import RunResult

HOSTILE = "<script>alert(1)</script> | `x` # [a](b)\nnew *line*"


def run(label="churn", **options):
    r = np.random.default_rng(0)
    y = r.random(2000) < 0.3
    s = (r.normal(size=2000) + 2 * y).astype(np.float32)
    certificate = certify(s[1000:], y[1000:], "maximize recall subject to fpr <= 0.1")
    return RunResult(
        goal="maximize recall subject to fpr <= 0.1",
        splits={"train": (s[:500], y[:500]), "calibration": (s[1000:], y[1000:])},
        threshold=certificate.threshold,
        certificate=json.loads(certificate.to_json()),
        label=label,
        method="implicit",
        model="mlp",
        columns=("age", label),
        seed=3,
        **options,
    )


def test_the_card_holds_promise_measurements_and_limits():
    card = model_card(run())
    for part in ("# churn", "## Promise", "## Measured", "## Data and training", "## Limits"):
        assert f"\n{part}" in f"\n{card}"
    assert "`maximize recall subject to fpr <= 0.1`" in card
    assert "status: certified" in card
    assert "independent draws" in card
    assert "| calibration |" in card
    row = next(line for line in card.splitlines() if line.startswith("| calibration"))
    shown = float(row.split("|")[4].split("%")[0])
    assert 0 < shown <= 10


def test_without_a_certificate_nothing_is_promised():
    bare = run()
    object.__setattr__(bare, "certificate", None)
    assert "Nothing was certified" in model_card(bare)


def test_hostile_names_stay_text():
    card = model_card(run(label=HOSTILE, notes=(HOSTILE,)))
    assert "<script>" not in re.sub(r"`[^`]*`", "", card)
    assert "[a](b)" not in re.sub(r"`[^`]*`", "", card)
    for line in card.splitlines():
        if line.startswith("|"):
            assert line.count("|") == 7


def test_a_name_is_shown_as_it_is_written():
    card = model_card(run(label="a<b & #1|2"))
    assert html.unescape(card.splitlines()[0]) == "# a<b & #1|2: 1 or not"


def test_the_card_of_a_certificate_alone():
    from setpoint.certificates import certify_three_way
    from setpoint.export import certificate_card

    r = np.random.default_rng(0)
    y = r.random(9000) < 0.3
    s = r.normal(size=9000) + 4 * y
    groups = {"<shop>": np.where(r.random(9000) < 0.5, "a|b", "c")}
    plain = certificate_card(certify(s, y, "maximize recall subject to fpr <= 0.05"))
    assert "fpr <= 0.05" in html.unescape(plain)
    assert re.search(r"\| fpr .* 0.05 \| [\d.]+ % \| [\d.]+ % \|", html.unescape(plain))
    assert "score > " in plain
    assert "independent draws" in plain
    each = certificate_card(certify(s, y, "fpr <= 0.05", groups=groups))
    assert "<shop> = 'a|b': score > " in html.unescape(each)
    assert "<shop>" not in re.sub(r"`[^`]*`", "", each)
    three = certificate_card(certify_three_way(s, y, "precision >= 0.95", "npv >= 0.95"))
    assert "accept: score > " in three
    refused = certificate_card(certify(s[:20], y[:20], "fpr <= 0.001"))
    assert "**infeasible**" in refused
    doubtful = certify(-s, y, "maximize recall subject to fpr <= 0.05")
    named = certificate_card(replace(doubtful, label_names=("good", "<bad>")))
    assert "Verdict: **certified, but" in named
    assert "labels: 'good', and '<bad>' as the positive one" in html.unescape(named)


def test_signs_of_a_goal_and_names_of_columns_are_plain_to_read():
    card = model_card(run(label="is_fraud"))
    assert "fpr <= 0.1" in card
    assert "is_fraud" in card
    assert "&#" not in card
