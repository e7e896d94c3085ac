"""Lightning: count what a trained model scores against its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setpoint.certificates import Certificate, Monitor
from setpoint.integrations.lightning import _scores_and_labels, pl
from setpoint.integrations.shared import scalars


class Watch(pl.Callback):  # type: ignore[misc]
    """Watch a certificate during ``trainer.predict`` and ``trainer.test``.

    ``predict_step`` returns scores; ``test_step`` returns ``(scores, labels)``, or a dict with
    these two names. After every epoch the numbers of the monitor are logged under
    ``setpoint/watch/``. The monitor is kept in checkpoints.

    Args:
        certificate: A certificate, the path of one, or a monitor that goes on.
        **options: As for :meth:`setpoint.Certificate.monitor`.
    """

    def __init__(self, certificate: Certificate | Monitor | str | Path, **options: Any) -> None:
        super().__init__()
        if isinstance(certificate, (str, Path)):
            certificate = Certificate.from_json(Path(certificate).read_text(encoding="utf-8"))
        made = isinstance(certificate, Monitor)
        self.monitor: Monitor = certificate if made else certificate.monitor(**options)

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
        """Count scores without labels."""
        scores = outputs["scores"] if isinstance(outputs, dict) else outputs
        self.monitor.update(scores.reshape(-1))

    def on_test_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, *batch: Any
    ) -> None:
        """Count scores with their labels."""
        scores, labels = _scores_and_labels(outputs)
        self.monitor.update(scores, labels)

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
