import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from certificates.simulate import sample

from setpoint.certificates import certify
from setpoint.certificates.text import text_table
from setpoint.rates import fpr, precision, recall

SCORES, LABELS = sample(0, 1500, 0.2)


def test_a_certificate_tells_the_whole_story():
    found = certify(SCORES, LABELS, fpr <= 0.01, candidates=3)
    text = str(found)
    n, m = int((~LABELS).sum()), found.points[0].alerts - found.points[0].true_alerts
    assert text.startswith("certified: fpr <= 0.01 with 95 % confidence\n")
    assert (
        f"score > {found.threshold!r} (float64), accepts {found.points[0].alerts} of 1,500" in text
    )
    assert f"at most {m} of {n:,} negatives may lie above" in " ".join(text.split())
    assert re.search(r"recall +\d+\.?\d* % measured, between", text)
    assert "one of 3 that were fixed before these rows" in " ".join(text.split())
    assert "score > threshold, with scores in float64" in text
    assert "would change it" in text
    assert max(map(len, text.split("\n"))) <= 96


def test_other_verdicts_say_why():
    assert str(certify(SCORES, LABELS, fpr <= 0.001)).startswith("infeasible: fpr <= 0.001")
    assert "needs 2,995 negatives, you have" in str(certify(SCORES, LABELS, fpr <= 0.001))
    assert str(certify(SCORES, LABELS, [fpr <= 0.01, recall >= 0.99])).startswith("infeasible")
    text = str(certify(SCORES, LABELS, [fpr <= 0.01, recall >= 0.9]))
    assert text.startswith("not certified")
    assert "looser bound" in text


def test_the_mean_is_not_called_certain():
    found = certify(SCORES, LABELS, fpr <= 0.01, guarantee="mean")
    assert str(found).startswith("certified: fpr <= 0.01 on average\n")
    assert "every other one exceeds it" in " ".join(str(found).split())


def test_which_mix_of_classes_is_assumed():
    def assumed(goal, **options):
        return " ".join(certify(SCORES, LABELS, goal, **options).assumptions)

    assert "share of positives may change" in assumed(fpr <= 0.05)
    assert "share of positives will be as in these rows" in assumed(precision >= 0.6)
    assert "share of positives will be 0.1" in assumed(precision >= 0.2, prevalence=0.1)


def test_text_of_the_data_is_escaped():
    hostile = np.where(np.arange(1500) % 2, "<script>alert(1)</script>", "'\"&")
    found = certify(SCORES, LABELS, fpr <= 0.05, groups={"<b>": hostile})
    html = found._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "<script>" in str(found)


def test_a_certificate_is_frozen():
    found = certify(SCORES, LABELS, fpr <= 0.05)
    with pytest.raises(FrozenInstanceError):
        found.status = "certified"
    assert hash(found) == hash(certify(SCORES, LABELS, fpr <= 0.05))


@pytest.mark.parametrize("first", range(20))
def test_a_number_and_its_per_cent_stay_on_one_line(first):
    words = "x" * first + " a rate of 12.1 %" * 30
    lines = text_table("title", [("name", words)]).splitlines()
    assert len(lines) > 3
    assert not [line for line in lines if line.strip().startswith("%")]
    shown = " ".join(line.removeprefix("  name").strip() for line in lines[1:])
    assert shown == words.strip()
