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
    model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1", random_state=0)
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


def test_only_certified_classifiers_can_be_watched():
    with pytest.raises(ValueError, match="LogisticRegression has none"):
        MonitoredClassifier(LogisticRegression())


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            self.net.weight.fill_(1.0)

    def test_step(self, batch):
        return self.net(batch[0]), batch[1]

    def predict_step(self, batch):
        return self.net(batch[0])


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
    again = Watch(certificate)
    again.load_state_dict(watch.state_dict())
    assert again.monitor.to_json() == watch.monitor.to_json()
    trainer.test(Model(), DataLoader(rows(2000, 0.7), 256), verbose=False)
    assert watch.monitor.verdict == "broken"
