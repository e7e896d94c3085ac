"""Hugging Face and TF-IDF: the guardrail of the examples, on texts that are made up on the spot."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import transformers.trainer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from setpoint import certify

transformers.trainer.is_datasets_available = lambda: False  # it takes tests/datasets for one
EXAMPLE = Path(__file__).parents[2] / "examples" / "guardrail.py"


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_the_example_runs_without_data(monkeypatch, capsys):
    monkeypatch.delenv("SETPOINT_DATA", raising=False)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    for line in ("TF-IDF, injection: certified", "transformer, jailbreak: certified", "stopped as"):
        assert line in printed


def test_one_of_a_thousand_harmless_texts_per_category():
    """The promise, on new texts, counted by numpy; categories that were not labelled are absent."""
    example = runpy.run_path(str(EXAMPLE), run_name="guardrail")
    names, goal, labels_of = example["NAMES"], example["GOAL"], example["labels_of"]
    texts, kinds = example["made_up_texts"](seed=0, harmless=6000, attacks=400)
    train = np.arange(len(texts)) % 5 == 0
    features = TfidfVectorizer(min_df=2)
    model = OneVsRestClassifier(LogisticRegression(C=10))
    truth = np.nan_to_num(labels_of(kinds)).astype(int)
    model.fit(features.fit_transform(texts[train]), truth[train])
    scores = model.decision_function(features.transform(texts[~train]))
    found = certify(scores, labels_of(kinds[~train]), goal, outputs=names)
    new, new_kinds = example["made_up_texts"](seed=1, harmless=20000, attacks=200)
    again = model.decision_function(features.transform(new))
    points, stopped = {point.group: point for point in found.points}, found.decide(again)
    assert set(found.thresholds) == set(names)
    for place, name in enumerate(names):
        # rows of other categories are no evidence
        assert points[name].examples == (~train & np.isin(kinds, [name, "harmless"])).sum()
        assert stopped[new_kinds == "harmless", place].mean() <= 0.001
        assert stopped[new_kinds == name, place].mean() > 0.3
