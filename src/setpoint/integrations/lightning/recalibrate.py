"""Thresholds recalibrated at the end of every validation.

A criterion needs no adapter: return its loss from ``training_step``. What a loop of one's own would
do besides, this callback does.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from setpoint.certificates import Certificate
from setpoint.integrations.lightning.library import pl
from setpoint.integrations.lightning.validation import own_rows, scores_of
from setpoint.integrations.metrics import GoalMetric
from setpoint.integrations.promise import promised, write
from setpoint.integrations.scalars import scalars
from setpoint.problems import Problem
from setpoint.solvers.criterion import BatchCriterion


class Recalibrate(pl.Callback):  # type: ignore[misc]
    """Find and certify the threshold at the end of every validation.

    ``validation_step`` returns ``(scores, labels)``, or a dict with these two names. Logged are the
    goal's value and rates, the threshold, whether it is held and whether it is certified; the
    certificate is written beside the checkpoints and kept inside them. A criterion that is an
    attribute of the module is attached to the wrapped model, and its numbers are logged.

    The same rows judge many epochs, and the best of them is kept. So the promise is made for all
    validations planned (``candidates``); after ``trainer.validate`` on rows of their own, for one.

    Args:
        problem: The goal.
        confidence: Of the certificate.
        folder: Where the certificate is written; the trainer's own folder by default.
        candidates: How many validations of the same rows the best is chosen from; None: counted.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        confidence: float = 0.95,
        folder: str | Path | None = None,
        candidates: int | None = None,
    ) -> None:
        super().__init__()
        self.problem, self.confidence = problem, confidence
        self.folder, self.candidates = folder, candidates
        self.metric = GoalMetric(problem, sync_on_compute=False)  # synced below, scores and all
        self.certificate: Certificate | None = None
        self.status = "not started"
        self._seen: dict[int, int] = {}  # rows by data loader
        self._validations = 0

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Tell criteria what becomes of their gradients on several ranks."""
        if trainer.world_size > 1:
            for part in pl_module.children():
                if isinstance(part, BatchCriterion) and part.reduction is None:
                    part.reduction = "mean"  # what Lightning's data-parallel strategies do

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *given: Any
    ) -> None:
        """Log what criteria say of the batch, as often as the trainer logs."""
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
        scores, labels = scores_of(outputs)
        seen = self._seen.get(dataloader_idx, 0)
        left = own_rows(trainer, dataloader_idx) - seen
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
        self.certificate, self.status = promised(self.problem, *seen, self.confidence, count)
        found = {"status": self.metric.status, "value": value, "rates": self.metric.choice.rates}
        at = [*self.metric.thresholds]
        if self.certificate:
            at = [self.certificate.threshold]
        found |= {"certified": bool(self.certificate), "threshold": at[0] if len(at) == 1 else at}
        pl_module.log_dict(scalars(found, "setpoint/val/"), rank_zero_only=True)
        if trainer.is_global_zero and self.certificate is not None:
            write(self.certificate, Path(self.folder or trainer.log_dir or "."))

    def _count(self, trainer: pl.Trainer) -> int:
        """From how many validations the best one will have been chosen."""
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
        """Read it back, checked."""
        found = state_dict["certificate"]
        self.certificate = None if found is None else Certificate.from_json(found)
        self._validations = int(state_dict["validations"])
