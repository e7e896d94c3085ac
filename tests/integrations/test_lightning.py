"""The callback and barrier steps under a real Lightning trainer."""

import json
import math
import os

import pytest
import pytorch_lightning as pl
import torch
from integrations.ranks import on_ranks
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from setpoint import Barrier, Certificate, Implicit, tpr_at_fpr
from setpoint.integrations.lightning import Recalibrate, barrier_step, rows_of_rank
from setpoint.solvers import at_most

GOAL = tpr_at_fpr(0.1)
# Lightning advises about workers, loggers and GPUs, and uses what torch has deprecated
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
QUIET = {
    "accelerator": "cpu",
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "log_every_n_steps": 2,
}


def data(n=400, seed=0):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=random)
    y = (x[:, 0] + 0.5 * torch.randn(n, generator=random) > 0.5).long()
    return TensorDataset(x, y)


class Model(pl.LightningModule):
    def __init__(self, *, as_dict=False):
        super().__init__()
        self.net, self.as_dict = nn.Linear(3, 1), as_dict
        self.criterion = Implicit(GOAL, steps=16)

    def training_step(self, batch, _):
        x, y = batch
        return self.criterion(self.net(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        scores = self.net(x)
        return {"scores": scores, "labels": y} if self.as_dict else (scores, y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


class Kept(pl.loggers.logger.DummyLogger):
    """A logger that keeps what it is told."""

    def __init__(self):
        super().__init__()
        self.logged = {}

    def log_metrics(self, metrics, step=None):
        self.logged.update(metrics)


@pytest.mark.parametrize("as_dict", [False, True])
def test_fit_recalibrates_logs_and_writes_the_certificate(tmp_path, as_dict):
    torch.manual_seed(0)
    logger, callback, model = Kept(), Recalibrate(GOAL, folder=tmp_path), Model(as_dict=as_dict)
    trainer = pl.Trainer(max_epochs=2, callbacks=[callback], logger=logger, **QUIET)
    held_out = data(600, seed=1)
    trainer.fit(model, DataLoader(data(), 50), DataLoader(held_out, 64))
    written = Certificate.from_json((tmp_path / "certificate.json").read_text())
    assert written == callback.certificate
    assert written.certified
    assert written.candidates == 2  # both epochs are judged by the same rows
    scores = model.net(held_out.tensors[0]).detach().reshape(-1)
    alarms = written.decide(scores)[held_out.tensors[1] == 0].double().mean()
    assert float(alarms) <= 0.1
    logged = logger.logged
    assert logged["setpoint/val/certified"] == 1.0
    assert logged["setpoint/val/certified_threshold"] == pytest.approx(written.threshold)
    assert logged["setpoint/val/goal"] == pytest.approx(GOAL.evaluate(scores, held_out.tensors[1]))
    assert logged["setpoint/val/fpr"] <= 0.1
    assert "setpoint/train/share" in logged  # what the criterion says of its batches
    assert logged["setpoint/train/status"] in (0.0, 1.0)


def test_a_checkpoint_keeps_threshold_and_criterion(tmp_path):
    callback, model = Recalibrate(GOAL, folder=tmp_path), Model()
    trainer = pl.Trainer(max_epochs=1, callbacks=[callback], logger=False, **QUIET)
    trainer.fit(model, DataLoader(data(), 50), DataLoader(data(600, seed=1), 64))
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    other, again = Recalibrate(GOAL, folder=tmp_path), Model()
    trainer = pl.Trainer(max_epochs=1, callbacks=[other], logger=False, **QUIET)
    trainer.fit(
        again,
        DataLoader(data(), 50),
        DataLoader(data(600, seed=1), 64),
        ckpt_path=tmp_path / "last.ckpt",
    )
    assert other.certificate == callback.certificate
    assert int(again.criterion.step_count) == 8
    torch.testing.assert_close(again.criterion.thresholds, model.criterion.thresholds)


def test_validating_rows_of_their_own_is_a_promise_for_one(tmp_path):
    callback, model = Recalibrate(GOAL, folder=tmp_path), Model()
    trainer = pl.Trainer(max_epochs=3, callbacks=[callback], logger=False, **QUIET)
    trainer.validate(model, DataLoader(data(600, seed=2), 64), verbose=False)
    assert callback.certificate.candidates == 1
    assert json.loads((tmp_path / "certificate.json").read_text())["candidates"] == 1


def test_too_few_rows_are_said_and_training_goes_on(tmp_path):
    callback = Recalibrate(GOAL, folder=tmp_path)
    trainer = pl.Trainer(max_epochs=1, callbacks=[callback], logger=False, **QUIET)
    trainer.fit(Model(), DataLoader(data(), 50), DataLoader(data(20, seed=1), 64))
    assert not callback.certificate.certified
    assert "needs 29 negatives" in callback.status


def test_a_module_that_keeps_its_scores_is_told(tmp_path):
    class Silent(Model):
        def validation_step(self, batch, _):
            return torch.tensor(0.0)

    trainer = pl.Trainer(max_epochs=1, callbacks=[Recalibrate(GOAL)], logger=False, **QUIET)
    with pytest.raises(TypeError, match=r"return \(scores, labels\) from validation_step"):
        trainer.validate(Silent(), DataLoader(data(20), 10), verbose=False)


@pytest.mark.parametrize(("rows", "ranks"), [(10, 4), (8, 4), (3, 2), (1, 2)])
def test_rows_that_a_sampler_repeats_count_once(rows, ranks):
    """Own rows of all ranks are all rows, without the copies that make ranks equal."""
    given = data(rows)
    seen = []
    for rank in range(ranks):
        sampler = DistributedSampler(given, num_replicas=ranks, rank=rank, shuffle=False)
        loader = DataLoader(given, 2, sampler=sampler)
        trainer = type("Trainer", (), {"val_dataloaders": loader})()
        seen += [*sampler][: rows_of_rank(trainer, 0)]
    assert sorted(seen) == list(range(rows))


def fitted(folder, batch, **options):
    """A model after four steps of plain descent, rows in order; validation has an odd row."""
    torch.manual_seed(0)
    callback, model = Recalibrate(GOAL, folder=folder), Model()
    model.configure_optimizers = lambda: torch.optim.SGD(model.net.parameters(), lr=0.5)
    trainer = pl.Trainer(
        max_epochs=1, callbacks=[callback], logger=False, num_sanity_val_steps=0, **QUIET, **options
    )
    rows, sampler = data(64), None
    if options:  # Lightning's own sampler would shuffle
        sampler = DistributedSampler(rows, shuffle=False)
    trainer.fit(model, DataLoader(rows, batch, sampler=sampler), DataLoader(data(401, seed=1), 64))
    weights = model.net.weight.detach().flatten().tolist()
    return [weights, callback.certificate.to_json()]


def two_devices(rank, folder):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"GROUP_RANK": "0", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "test"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    return fitted(folder, 8, devices=2, strategy="ddp")


@pytest.mark.slow
def test_two_devices_train_and_certify_as_one(tmp_path):
    """Batches of 8 on two ranks are batches of 16, and every validation row counts once."""
    weights, certificate = fitted(tmp_path / "one", 16)
    expected = Certificate.from_json(certificate)
    for found, text in on_ranks(two_devices, 2, tmp_path):
        assert found == pytest.approx(weights, abs=1e-5)
        promised = Certificate.from_json(text)
        assert promised.points[0].examples == expected.points[0].examples == 401
        assert promised.threshold == pytest.approx(expected.threshold, abs=1e-4)


class Held(pl.LightningModule):
    """Two losses: make one small while the other stays at most 1."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.weight = nn.Parameter(torch.tensor([3.0]))
        self.barrier = Barrier([self.weight], gain=0.0)

    def training_step(self, batch, _):
        bound = at_most((self.weight - 2).square().sum(), 1.0)
        barrier_step(self, self.barrier, self.weight.square().sum(), subject_to=bound)

    def configure_optimizers(self):
        return torch.optim.SGD([self.weight], lr=0.1)


def test_barrier_steps_are_those_of_a_plain_loop(tmp_path):
    model = Held()
    trainer = pl.Trainer(max_epochs=1, logger=Kept(), **QUIET)
    trainer.fit(model, DataLoader(data(300), 5))
    plain = Held()
    optimizer = plain.configure_optimizers()
    for _ in range(60):
        optimizer.zero_grad()
        bound = at_most((plain.weight - 2).square().sum(), 1.0)
        plain.barrier.backward(plain.weight.square().sum(), subject_to=bound)
        optimizer.step()
    torch.testing.assert_close(model.weight, plain.weight, rtol=0, atol=0)
    assert math.isclose(float(model.weight), 1.0, abs_tol=0.01)
    assert trainer.logger.logged["setpoint/barrier/multiplier/0"] > 0
    assert "barrier.state" in " ".join(model.state_dict())


def test_automatic_optimisation_is_refused():
    model = Held()
    model.automatic_optimization = True
    with pytest.raises(RuntimeError, match="automatic_optimization = False"):
        barrier_step(model, model.barrier, model.weight.sum())
