"""One scheme of keys in all integrations: the same data give the same numbers by the same names.

``[library's part]setpoint/[part/]name[/output]``, as docs/recipes/loggers.md has it.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from skorch.helper import predefined_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.integrations.boosting import Objective
from setpoint.integrations.huggingface import Goal
from setpoint.integrations.lightning import Recalibrate
from setpoint.integrations.metrics import GoalMetric, RatesAt
from setpoint.integrations.shared import goal_metrics, scalars
from setpoint.integrations.skorch import GoalScoring, OperatingNet

GOAL = "maximize recall subject to fpr <= 10 %"
KEY = re.compile(r"setpoint/((train|val|watch|barrier)/)?[\w.\-]+(/[\w.\-]+)*")
PAGE = (Path(__file__).parents[2] / "docs/recipes/loggers.md").read_text("utf-8")


def draw(rows=600):
    random = np.random.default_rng(0)
    labels = (random.random(rows) < 0.3).astype(np.float32)
    return (random.normal(size=rows) + 1.5 * labels).astype(np.float32), labels


@pytest.fixture(scope="module")
def expected():
    """The same numbers by numpy: every cut is tried."""
    scores, labels = draw()
    best = (-1.0, 0.0, 0.0)
    for at in np.unique(scores):
        recall, fpr = (scores[labels == 1] > at).mean(), (scores[labels == 0] > at).mean()
        if fpr <= 0.1:
            best = max(best, (recall, fpr, at))
    return {"goal": best[0], "recall": best[0], "fpr": best[1], "threshold": best[2], "status": 1.0}


def check(found, expected, prefix):
    """All keys follow the scheme, and what is expected stands under its name."""
    assert all(KEY.fullmatch(key) for key in found), found
    for name, value in expected.items():
        if prefix + name in found:
            assert float(found[prefix + name]) == pytest.approx(float(value), abs=1e-6), name
    assert f"{prefix}goal" in found


def test_own_loop(expected):
    found = goal_metrics(*draw(), GOAL)
    check(found, expected, "setpoint/val/")
    assert set(found) == {f"setpoint/val/{name}" for name in expected}


def test_names_of_outputs_come_last(expected):
    scores, labels = draw()
    both = np.stack([scores, scores], 1), np.stack([labels, labels], 1)
    found = goal_metrics(*both, GOAL, outputs=["a", "b"])
    assert set(found) == {f"setpoint/val/{name}/{o}" for name in expected for o in "ab"}
    check({key.removesuffix("/b"): v for key, v in found.items()}, expected, "setpoint/val/")


def test_training_batches():
    scores, labels = map(torch.tensor, draw())
    criterion = sp.Implicit(GOAL)
    criterion(scores.requires_grad_(), labels).backward()
    found = scalars(criterion.stats())
    assert all(KEY.fullmatch(key) and key.startswith("setpoint/train/") for key in found)


def test_hugging_face(expected):
    goal = Goal(GOAL)
    scores, labels = draw()
    prediction = SimpleNamespace(predictions=scores[:, None], label_ids=labels)
    check(goal.metrics(prediction), expected, "setpoint/")  # the Trainer puts eval_ before them


class Scores(pl.LightningModule):
    """Gives the scores that are its inputs."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def validation_step(self, batch, index):
        return batch[0] * self.weight, batch[1]


# Lightning advises about workers
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_lightning(expected, tmp_path):
    rows = TensorDataset(*map(torch.tensor, draw()))
    callback = Recalibrate(GOAL, folder=tmp_path)
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = pl.Trainer(accelerator="cpu", callbacks=[callback], **quiet)
    trainer.validate(Scores(), DataLoader(rows, 100), verbose=False)
    found = dict(trainer.callback_metrics)
    check(found, expected, "setpoint/val/")
    scores, labels = draw()
    at = float(found["setpoint/val/certified_threshold"])
    assert at == callback.certificate.threshold
    there = (scores[labels == 1] > at).mean()
    assert float(found["setpoint/val/certified_goal"]) == pytest.approx(there)


def test_skorch(expected):
    scores, labels = draw()
    net = OperatingNet(
        nn.Sequential(nn.Linear(1, 1), nn.Flatten(0)),
        criterion=sp.Implicit,
        criterion__problem=GOAL,
        max_epochs=1,
        lr=0.0,
        verbose=0,
        train_split=predefined_split(
            TensorDataset(torch.tensor(scores)[:, None], torch.tensor(labels))
        ),
        callbacks=[("goal", GoalScoring(GOAL))],
    )
    net.initialize()
    with torch.no_grad():
        net.module_[0].weight.fill_(1.0)
        net.module_[0].bias.fill_(0.0)
    net.partial_fit(scores[:, None], labels)
    (value,) = net.history[:, "setpoint/val/goal"]
    assert value == pytest.approx(expected["goal"])


def test_torchmetrics(expected):
    scores, labels = map(torch.tensor, draw())
    metric, rates = GoalMetric(GOAL), RatesAt(float(expected["threshold"]), sp.fpr, sp.recall)
    for each in (metric, rates):
        each.update(scores, labels)
    found = {"setpoint/goal": metric.compute(), **rates.compute()}
    check(found, expected, "setpoint/")


def test_boosting(expected):
    data = SimpleNamespace(get_label=lambda: draw()[1], get_weight=lambda: None)
    found = dict([Objective(GOAL).metric(draw()[0], data)])
    check({key: -value for key, value in found.items()}, expected, "setpoint/")  # lower is better
    assert Objective(GOAL).feval(draw()[0], data)[0] == "setpoint/goal"


def test_the_page_has_every_name(expected):
    scores, labels = map(torch.tensor, draw())
    criterion = sp.Implicit(GOAL)
    criterion(scores.requires_grad_(), labels).backward()
    names = [*expected, *criterion.stats(), "certified", "certified_threshold", "certified_goal"]
    for name in set(names) - {"recall", "fpr"}:
        assert f"`{name}`" in PAGE, name


def test_texts_of_rates_become_keys_that_every_logger_takes():
    found = scalars(
        {'abs(tpr on sex="f" - tpr on sex="m")': 0.1, "0.5 * fpr": 1.0}, "setpoint/val/"
    )
    assert list(found) == ["setpoint/val/abs_tpr_on_sex_f_-_tpr_on_sex_m", "setpoint/val/0.5_fpr"]
