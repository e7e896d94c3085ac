"""The monitor inside other people's loops."""

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from setpoint.certificates import certify
from setpoint.estimators import CertifiedThreshold, MonitoredClassifier
from setpoint.integrations.lightning import Watch

QUIET = {
    "accelerator": "cpu",
    "devices": 1,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "logger": False,
}


@pytest.fixture(scope="module")
def fitted():
    x, y = make_classification(12_000, weights=[0.8], class_sep=1.5, random_state=0)
    names = np.array(["no", "yes"])[y]
    options = {"goal": "fpr <= 0.1", "pos_label": "yes", "random_state": 0}
    model = CertifiedThreshold(LogisticRegression(), **options)
    return model.fit(x[:6000], names[:6000]), x[6000:], names[6000:]


def test_a_classifier_watches_itself(fitted):
    model, x, y = fitted
    watched = MonitoredClassifier(model)
    ids = np.arange(3000)
    np.testing.assert_array_equal(watched.predict(x[:3000], ids=ids), model.predict(x[:3000]))
    assert watched.status == "holds"
    assert watched.add_labels(ids, y[:3000]) == "holds"
    assert watched.monitor.rates[0].relevant == (y[:3000] == "no").sum()
    broken = np.where(y[3000:] == "no", "yes", "no")
    assert watched.update(x[3000:], broken).startswith("broken")
    assert watched.recalibrate(x, y).certified
    assert watched.status == "holds"
    watched.predict(x[:10])
    assert watched.monitor.rows == 6010


def test_columns_pass_through_a_classifier(fitted):
    model, x, y = fitted
    watched, plain = (MonitoredClassifier(model, features=["age"]) for _ in range(2))
    some = y[:2000].astype(object)
    some[::2] = None
    columns = {"clusters": np.arange(2000) // 2, "features": {"age": np.arange(2000.0)}}
    watched.update(x[:2000], some, label_shares=0.5, **columns)
    scores = model.raw_scores(x[:2000])
    labels = np.where(np.arange(2000) % 2 == 0, np.nan, y[:2000] == "yes")
    plain.monitor.update(scores, labels, label_shares=0.5, **columns)
    assert watched.monitor.to_json() == plain.monitor.to_json()


def test_a_classifier_whose_goal_names_groups_is_watched(fitted):
    _, x, y = fitted
    group = np.array(["a", "b"] * 3000)
    goal = 'fpr on g="a" <= 0.15 and fpr on g="b" <= 0.15'
    options = {"goal": goal, "pos_label": "yes", "random_state": 0}
    model = CertifiedThreshold(LogisticRegression(), **options)
    model.fit(x[:4000], y[:4000], groups={"g": group[:4000]})
    watched, later = MonitoredClassifier(model), {"groups": {"g": group[4000:]}}
    decided = model.certificate_.decide(model.raw_scores(x[4000:]), group[4000:])
    np.testing.assert_array_equal(watched.predict(x[4000:], **later) == "yes", decided)
    assert watched.update(x[4000:], y[4000:], **later) == "holds"
    assert all(watch.value is not None for watch in watched.monitor.rates)


def test_only_certified_classifiers_can_be_watched():
    with pytest.raises(ValueError, match="LogisticRegression has none"):
        MonitoredClassifier(LogisticRegression())


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.named = False
        self.net = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            self.net.weight.fill_(1.0)

    def test_step(self, batch):
        return self.net(batch[0]), batch[1]

    def predict_step(self, batch):
        scores = self.net(batch[0])
        return {"scores": scores, "ids": batch[0][:, 0].tolist()} if self.named else scores


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_lightning_counts_what_it_tests_and_predicts(tmp_path):
    random = np.random.default_rng(0)

    def rows(n, shift=0.0):
        labels = random.random(n) < 0.2
        scores = random.normal(size=n) + 2 * labels + shift
        x = torch.tensor(scores, dtype=torch.float32)[:, None]
        return TensorDataset(x, torch.tensor(labels).long())

    x, y = rows(5000).tensors
    certificate = certify(x[:, 0].numpy(), y.numpy(), "fpr <= 0.05")
    (tmp_path / "c.json").write_text(certificate.to_json())
    watch = Watch(tmp_path / "c.json")
    trainer = pl.Trainer(callbacks=[watch], default_root_dir=tmp_path, **QUIET)
    trainer.test(Model(), DataLoader(rows(2000), 256), verbose=False)
    assert watch.monitor.rows == 2000
    assert trainer.callback_metrics["setpoint/watch/level"] == 0
    trainer.predict(Model(), DataLoader(rows(1000), 256))
    assert watch.monitor.rows == 3000
    named = Model()
    named.named = True
    late = rows(500)
    trainer.predict(named, DataLoader(late, 256))
    assert len(watch.monitor.pending.waiting) == 500
    again = Watch(certificate)
    again.load_state_dict(watch.state_dict())
    assert again.monitor.to_json() == watch.monitor.to_json()
    trainer.test(Model(), DataLoader(rows(2000, 0.7), 256), verbose=False)
    assert watch.monitor.verdict == "broken"
