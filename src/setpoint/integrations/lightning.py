"""Lightning: callbacks that recalibrate the threshold and watch it in use, and barrier steps.

A criterion needs no adapter: return its loss from ``training_step``. The callback does what a loop
of one's own would do besides: choose, certify and log the threshold after every validation.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DistributedSampler

from setpoint._extras import install_advice
from setpoint.certificates import Certificate
from setpoint.integrations.shared import (
    VALIDATION,
    goal_metrics,
    scalars,
    try_certify,
    write_certificate,
)
from setpoint.monitoring import Monitor
from setpoint.problems import GoalLike, as_problem
from setpoint.solvers import Barrier, BatchCriterion

try:
    import lightning.pytorch as pl
except ImportError:
    try:
        import pytorch_lightning as pl
    except ModuleNotFoundError as missing:
        raise install_advice(missing) from None

from setpoint.integrations.metrics import GoalMetric


class Recalibrate(pl.Callback):  # type: ignore[misc]
    """Find and certify the threshold at the end of every validation.

    ``validation_step`` returns ``(scores, labels)``, or a dict with these two names. Logged are
    the goal's value, its rates and the threshold, all at the best threshold of these rows, then
    whether a threshold is certified, which, and the goal's value at it; the
    certificate is written beside the checkpoints and kept inside them. A criterion that is an
    attribute of the module is attached to the wrapped model, and its numbers are logged.

    The same rows judge many epochs, and the best is kept. So the certificate is corrected for
    all validations planned (``candidates``); after ``trainer.validate`` on other rows, for one.

    Args:
        problem: The goal.
        confidence: Of the certificate.
        folder: Where the certificate is written; the trainer's own folder by default.
        candidates: How many validations of the same rows the best is chosen from; None: counted.

    Examples:
        >>> callback = Recalibrate("fpr <= 0.01", confidence=0.99)
        >>> callback.confidence
        0.99
    """

    def __init__(
        self,
        problem: GoalLike,
        *,
        confidence: float = 0.95,
        folder: str | Path | None = None,
        candidates: int | None = None,
    ) -> None:
        super().__init__()
        self.problem, self.confidence = as_problem(problem, type(self).__name__), confidence
        self.folder, self.candidates = folder, candidates
        self.metric = GoalMetric(problem, sync_on_compute=False)  # synced below, scores and all
        self.certificate: Certificate | None = None
        self.status = "not started"
        self._seen: dict[int, int] = {}  # rows by data loader
        self._validations = 0

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell criteria that gradients of several ranks are averaged."""
        if trainer.world_size > 1:
            for part in pl_module.children():
                if isinstance(part, BatchCriterion) and part.reduction is None:
                    part.reduction = "mean"  # what Lightning's data-parallel strategies do

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *given: Any
    ) -> None:
        """Log the statistics of criteria, as often as the trainer logs."""
        if (trainer.global_step + 1) % trainer.log_every_n_steps == 0:
            for part in pl_module.children():
                if isinstance(part, BatchCriterion):
                    stats: dict[str, Any] = part.stats()  # type: ignore[operator]
                    pl_module.log_dict(scalars(stats), rank_zero_only=True)

    def on_validation_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Forget the scores of other epochs."""
        self.metric = self.metric.to(pl_module.device)
        self.metric.reset()
        self._seen = {}

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Collect scores and labels, each row once."""
        scores, labels = _scores_and_labels(outputs)
        seen = self._seen.get(dataloader_idx, 0)
        left = rows_of_rank(trainer, dataloader_idx) - seen
        self._seen[dataloader_idx] = seen + len(scores)
        if left > 0:
            self.metric.update(scores[:left], labels[:left])

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Choose, certify, log and write."""
        if trainer.sanity_checking:
            return
        with self.metric.sync_context(should_sync=trainer.world_size > 1):
            seen = self.metric.seen()  # first: compute gives each rank its own rows back
            value = float(self.metric.compute())
        count = self._count(trainer)
        self.certificate, self.status = try_certify(self.problem, *seen, self.confidence, count)
        found = {**goal_metrics(*seen, self.problem), f"{VALIDATION}goal": value}
        found[f"{VALIDATION}certified"] = float(bool(self.certificate))
        if self.certificate:
            at = self.certificate.threshold
            reached = self.problem.evaluate(*seen, thresholds=at)
            found |= scalars({"certified_threshold": at, "certified_goal": reached}, VALIDATION)
        pl_module.log_dict(found, rank_zero_only=True)
        if trainer.is_global_zero and self.certificate is not None:
            write_certificate(self.certificate, Path(self.folder or trainer.log_dir or "."))

    def _count(self, trainer: pl.Trainer) -> int:
        """The number of validations that the best one is chosen from."""
        if self.candidates is not None:
            return self.candidates
        if trainer.state.fn != "fit":
            return 1
        self._validations += 1
        epochs, every = trainer.max_epochs or 0, trainer.check_val_every_n_epoch or 1
        each = max(1, trainer.num_training_batches // max(1, trainer.val_check_batch))
        return max(self._validations, math.ceil(epochs / every) * int(each))

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: the certificate, as its own JSON."""
        found = None if self.certificate is None else self.certificate.to_json()
        return {"certificate": found, "validations": self._validations}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore :meth:`state_dict`; a changed certificate is a ValueError."""
        found = state_dict["certificate"]
        self.certificate = None if found is None else Certificate.from_json(found)
        self._validations = int(state_dict["validations"])


def _scores_and_labels(outputs: Any) -> tuple[Tensor, Tensor]:
    """Scores and labels, as ``validation_step`` returned them.

    Raises:
        TypeError: It returned something else.
    """
    if isinstance(outputs, dict) and {"scores", "labels"} <= set(outputs):
        outputs = outputs["scores"], outputs["labels"]
    if not (isinstance(outputs, (tuple, list)) and len(outputs) == 2):
        raise TypeError(
            "Recalibrate needs the scores: return (scores, labels) from validation_step, or a dict "
            f"with these names; it returned {type(outputs).__name__}."
        )
    scores, labels = (torch.as_tensor(part).reshape(-1) for part in outputs)
    return scores, labels


def rows_of_rank(trainer: pl.Trainer, place: int) -> int:
    """How many rows this rank has, not counting those a sampler repeats to make ranks equal."""
    loaders = trainer.val_dataloaders
    loader = loaders[place] if isinstance(loaders, (list, tuple)) else loaders
    sampler = getattr(loader, "sampler", None)
    if not isinstance(sampler, DistributedSampler):
        return sys.maxsize
    rows: int = len(range(sampler.rank, len(sampler.dataset), sampler.num_replicas))  # type: ignore[arg-type]
    return rows


def barrier_step(
    module: pl.LightningModule, barrier: Barrier, objective: Tensor, **constraints: Any
) -> dict[str, Any]:
    """One step of a barrier, to be called in ``training_step`` under manual optimisation.

    Args:
        module: With ``self.automatic_optimization = False`` and one optimizer.
        barrier: Made of the module's parameters; an attribute of it, so that checkpoints keep it.
        objective: The loss to make small.
        **constraints: ``subject_to=``, or ``after=`` and ``lower=``; ``rows=`` where devices have
            different numbers of rows: see :meth:`setpoint.Barrier.backward`.

    Returns:
        The step in plain numbers; they are logged too.

    Examples:
        >>> import torch, warnings
        >>> from setpoint.solvers import at_most
        >>> warnings.simplefilter("ignore")  # Lightning's own
        >>> class Small(pl.LightningModule):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.automatic_optimization = False
        ...         self.model = torch.nn.Linear(2, 1)
        ...         self.barrier = Barrier(self.model.parameters())
        ...     def training_step(self, batch, index):
        ...         scores, size = self.model(batch[0]), self.model.weight.square().sum()
        ...         barrier_step(self, self.barrier, -scores.mean(), subject_to=at_most(size, 1.0))
        ...     def configure_optimizers(self):
        ...         return torch.optim.SGD(self.parameters(), lr=0.1)
        >>> options = dict(logger=False, enable_checkpointing=False, accelerator="cpu")
        >>> quiet = dict(enable_progress_bar=False, enable_model_summary=False)
        >>> rows = torch.utils.data.TensorDataset(torch.randn(40, 2))
        >>> module, loader = Small(), torch.utils.data.DataLoader(rows, 8)
        >>> pl.Trainer(max_epochs=1, **options, **quiet).fit(module, loader)
        >>> module.barrier.report()["steps"]
        5
    """
    if module.automatic_optimization:
        raise RuntimeError(
            "A barrier combines gradients by itself: set self.automatic_optimization = False in "
            "the module's __init__."
        )
    optimizer = module.optimizers()
    optimizer.zero_grad()
    scaler = getattr(module.trainer.precision_plugin, "scaler", None)
    report = barrier.backward(objective, scaler=scaler, **constraints)
    optimizer.step()
    module.log_dict(scalars(report, "setpoint/barrier/"))
    return report


_SCORED = ("scores", "labels", "loss")


class Watch(pl.Callback):  # type: ignore[misc]
    """Watch a certificate during ``trainer.predict`` and ``trainer.test``.

    ``predict_step`` returns scores; ``test_step`` returns ``(scores, labels)``. Either may return a
    dict with these names and any column of :meth:`setpoint.Monitor.update` (``groups``, ``ids``,
    ``clusters``, ``label_shares``, ``amounts``, ``times``, ``features``). After every epoch the
    numbers of the monitor are logged under ``setpoint/watch/``. The monitor is kept in checkpoints.

    Args:
        certificate: A certificate, the path of one, or a monitor that goes on.
        **options: As for :meth:`setpoint.Certificate.monitor`.

    Examples:
        >>> import numpy as np
        >>> from setpoint import certify
        >>> labels = np.arange(3000) % 3 == 0
        >>> scores = np.random.default_rng(0).normal(size=3000) + 3 * labels
        >>> Watch(certify(scores, labels, "fpr <= 0.05")).monitor.status
        'holds'
    """

    def __init__(self, certificate: Certificate | Monitor | str | Path, **options: Any) -> None:
        super().__init__()
        if isinstance(certificate, (str, Path)):
            certificate = Certificate.from_json(Path(certificate).read_text(encoding="utf-8"))
        if isinstance(certificate, Certificate):
            certificate = certificate.monitor(**options)
        self.monitor: Monitor = certificate

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Refuse several ranks: each would count a part of the rows only."""
        if trainer.world_size > 1:
            raise RuntimeError(
                "Watch counts the rows of one process: predict with devices=1, or gather the "
                "scores and call monitor.update yourself."
            )

    def on_predict_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, *batch: Any
    ) -> None:
        """Count scores, with labels if there are any."""
        columns = dict(outputs) if isinstance(outputs, dict) else {"scores": outputs}
        self.monitor.update(torch.as_tensor(columns.pop("scores")).reshape(-1), **columns)

    def on_test_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, *batch: Any
    ) -> None:
        """Count scores with their labels."""
        scores, labels = _scores_and_labels(outputs)
        more = dict(outputs) if isinstance(outputs, dict) else {}
        columns = {name: column for name, column in more.items() if name not in _SCORED}
        self.monitor.update(scores, labels, **columns)

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the state."""
        pl_module.log_dict(scalars(self._numbers(), "setpoint/watch/"), rank_zero_only=True)

    def on_predict_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the state; ``self.log`` is for training and tests only."""
        for logger in trainer.loggers:
            logger.log_metrics(scalars(self._numbers(), "setpoint/watch/"), step=self.monitor.rows)

    def _numbers(self) -> dict[str, float]:
        numbers = self.monitor.metrics()
        return {"level": numbers.pop("status"), **numbers}  # `status` means "held" to scalars

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"monitor": self.monitor.to_json()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore :meth:`state_dict`."""
        self.monitor = Monitor.from_json(state_dict["monitor"])
