"""Every example of an integration runs, and prints what it is about."""

import runpy
from pathlib import Path

import pytest
import transformers.trainer

transformers.trainer.is_datasets_available = lambda: False  # it takes tests/datasets for one
EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN = {
    "any_classifier": [
        "LGBMClassifier: certified, score >",
        "InContext: certified, probability >",
        "an 8 against the rest: certified",
        "a shift for each of 10 digits",
    ],
    "boosted_trees": ["log-loss: certified", "then the goal: certified"],
    "huggingface_trainer": ["validation: tpr", "certified:", "config.json has the threshold"],
    "lightning_callback": ["certified:", "On test: fpr 0."],
    "deploy": ["certified:", "0 of 100,000 decisions differ"],
    "optuna_search": ["best of 6", "certified:"],
    "skorch_net": ["certified:", "On test: fpr"],
    "sklearn_pipeline": ["pipeline: certified", "search: certified"],
    "tensorboard_scalars": ["setpoint/train/threshold"],
    "torchmetrics_goal": ["'tpr': 0.", "'setpoint/fpr': 0.0"],
}


# the libraries advise about workers, pinned memory and what they deprecate in each other
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", SHOWN)
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for words in SHOWN[name]:
        assert words in printed
