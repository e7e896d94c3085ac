"""The page of a run for several classes: one room with that of two."""

import re

import numpy as np
import pytest
from reports.class_sample import NAMES, class_result, draw
from reports.sample import HOSTILE
from reports.test_page import Reader, block
from sklearn.metrics import balanced_accuracy_score, confusion_matrix

from setpoint.reports import page
from setpoint.results import Findings


@pytest.fixture(scope="module")
def shown():
    return page(class_result())


def decided(part="test", shifts=(0.5, 0.0, -0.5)):
    run = class_result()
    scores, labels, _ = run.splits[part]
    return labels, (scores - np.array(shifts)).argmax(1)


def test_the_confusion_before_and_after_is_that_of_scikit_learn(shown):
    found = block(shown)["confusion"]
    assert found["before"] == confusion_matrix(*decided(shifts=(0, 0, 0))).tolist()
    assert found["after"] == confusion_matrix(*decided()).tolist()
    assert found["before"] != found["after"]
    tables = re.findall(r'<table class="matrix">(.*?)</table>', shown, re.S)
    for table, key in zip(tables, ("before", "after"), strict=True):
        assert key.capitalize() in table
        cells = re.findall(r'<td class="(?:right|wrong)"[^>]*>(.*?)</td>', table)
        counts = [int(re.sub(r"<.*?>|,", "", cell)) for cell in cells]
        assert counts == np.ravel(found[key]).tolist()
    right = np.diag(found["after"]) / np.sum(found["after"], 1)
    assert f"{100 * right[0]:.1f} %" in tables[1]


def test_what_was_asked_for_is_shown_split_by_split(shown):
    text = Reader(shown).text
    for part in ("train", "validation", "calibration", "test"):
        for shifts in ((0.5, 0.0, -0.5), (0, 0, 0)):
            value = balanced_accuracy_score(*decided(part, shifts))
            assert f"{100 * value:.1f} %" in text
    assert "✓ Certified" in text
    assert "At least 6 in 10 bird cases are found: proved with 95 % confidence" in text
    assert "at least 71.0 % is proved" in text
    found = Findings(class_result())
    assert [row.name for row in found.classes] == list(NAMES)
    labels, taken = decided()
    bird = found.classes[2]
    assert (bird.count, bird.shift) == ((labels == 2).sum(), -0.5)
    assert bird.recall.value == (taken[labels == 2] == 2).mean()
    assert bird.precision.value == (labels[taken == 2] == 2).mean()
    assert bird.coverage.value == (taken == 2).mean()
    assert bird.recall.interval.low < bird.recall.value < bird.recall.interval.high
    assert [m.value for m in found.judged.bounds] == [bird.recall.value]
    assert found.judged.theirs != found.judged.objective


def test_it_is_the_same_self_contained_page(shown):
    reader = Reader(shown)
    assert reader.tags.count("script") == 1
    assert reader.tags.count("h1") == 1
    policies = [value for key, value in reader.attributes if key == "content"]
    assert policies[0].startswith("default-src 'none'; ")
    assert not {"img", "iframe", "object", "embed", "base", "form"} & set(reader.tags)
    assert "What this rests on" in reader.text
    assert all('scope="' in cell for cell in re.findall(r"<th\b[^>]*>", shown))
    assert shown == page(class_result())


@pytest.mark.parametrize("bad", HOSTILE)
def test_names_of_classes_are_text(bad):
    names = (bad, "dog", "bird")
    run = class_result(classes=names, goal="maximize macro(recall)", label=bad, notes=[bad])
    shown = page(run)
    shown.encode("utf-8")
    reader = Reader(shown)
    assert reader.tags.count("script") == 1
    assert "img" not in reader.tags
    assert bad[:15].replace("\x00", "\ufffd") in reader.text
    assert block(shown)["classes"] == list(names)


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (None, "Nothing below is a promise"),
        ({"status": "not certified", "confidence": 0.9}, "do not prove it with 90 % confidence"),
        ({"status": "no certificate", "notes": ["No bound."]}, "No bound."),
    ],
)
def test_what_is_not_promised_is_said(certificate, words):
    assert words in Reader(page(class_result(certificate=certificate))).text


def test_many_classes_are_taken_together_and_a_missing_one_is_no_trouble():
    names = tuple(f"class {i:02}" for i in range(25))
    splits = {"test": draw(2000, count=25)}
    run = class_result(
        goal="minimize error subject to coverage of 3 at 0.1".replace(" 3", ' "class 03"'),
        classes=names,
        splits=splits,
        threshold=np.zeros(25),
        baseline=None,
        certificate=None,
    )
    shown = page(run)
    assert "The 20 most frequent classes are shown, the other 5 as one" in shown
    assert np.shape(block(shown)["confusion"]["after"]) == (25, 25)
    table = re.findall(r'<table class="matrix">(.*?)</table>', shown, re.S)[0]
    counts = re.findall(r'<td class="(?:right|wrong)"[^>]*>(.*?)</td>', table)
    assert len(counts) == 21 * 21
    assert sum(int(re.sub(r"<.*?>|,", "", cell)) for cell in counts) == 2000
    scores, labels = draw()
    gone = page(class_result(splits={"test": (scores, labels.clip(max=1))}, baseline=None))
    assert block(gone)["splits"][0]["objective"]["value"] is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"threshold": (0.0, 1.0)}, "3 names and 2 shifts"),
        ({"classes": ("a", "a", "b")}, "2 names"),
        ({"splits": {}}, "got none"),
        ({"splits": {"exam": draw()}}, "'exam'"),
        ({"splits": {"test": draw(count=4)}}, "a score for each of 3 classes"),
        ({"baseline": {"test": np.zeros((5, 3))}}, "same rows"),
    ],
)
def test_what_does_not_fit_is_refused(changes, why):
    with pytest.raises(ValueError, match=why):
        class_result(**changes)


def test_the_page_of_classes_needs_no_torch(fresh_python):
    code = (
        "import sys; sys.path.insert(0, 'tests'); from reports.class_sample import class_result; "
    )
    code += "from setpoint.reports import page; page(class_result()); print('torch' in sys.modules)"
    assert fresh_python(code) == "False"
