"""Boosted trees of LightGBM as a model like the others.

Trees have capacity to spare, so log-loss trains them, and decides how many there are: on seven
tables, three goals and three splits the goal's own metric, which rests on few rows, stopped worse
(70.28 against 70.53 points, 3.5 worse on the smallest table; ``python -m benchmarks trees``).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._extras import optional
from setpoint.distributed import workers
from setpoint.train.loop import Fitted
from setpoint.train.portfolio import Best
from setpoint.train.validation import Validation

MODELS = ("linear", "mlp", "boosted")
"""What the model ``auto`` is made of, the simplest first."""
LOG_LOSS = "log_loss"
"""The method by which trees are grown."""
TREES = 500
"""The most trees of a model."""
STALE_TREES = 50
"""Trees without a better log-loss on validation rows after which no more are grown."""
_SETTINGS: dict[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 31,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


class BoostedTrees(nn.Module):
    """Trees as a module without parameters: rows ``[n, d]`` to scores ``[n]``, or ``[n, K]``.

    Args:
        text: The model in LightGBM's own text format.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self._booster: Any = None

    def forward(self, x: Tensor) -> Tensor:
        """Log-odds of the positive class, or the score of every class."""
        if torch.compiler.is_compiling():
            raise NotImplementedError(
                "boosted trees are not a network: they cannot be exported or compiled. Train with "
                'model="mlp" or "linear", or take their text (module_.text, of a sum '
                "module_.members[...].text: LightGBM's own format) and the threshold."
            )
        scores = self.booster.predict(x.detach().cpu().numpy(), raw_score=True)
        return torch.from_numpy(np.asarray(scores)).to(x.device)

    @property
    def booster(self) -> Any:
        """LightGBM's object of this model."""
        if self._booster is None:
            self._booster = optional("lightgbm").Booster(model_str=self.text)
        return self._booster

    def __getstate__(self) -> dict[str, Any]:
        """Without what LightGBM made of the text."""
        return {**self.__dict__, "_booster": None}


def fit_trees(
    x: Tensor,
    y: Tensor,
    *,
    validation: Validation,
    seed: int,
    weights: Tensor | None = None,
    classes: int = 1,
) -> Best:
    """Grow trees by log-loss for as long as it falls on validation rows.

    Args:
        x: Rows ``[n, d]``, as they are: trees need no scaling.
        y: Labels 0 or 1; of several classes, the column.
        validation: The rows that stop the training, and the goal whose metric is taken on them.
        seed: Of LightGBM.
        weights: Optional, one per row.
        classes: How many classes there are, if they are several.

    Raises:
        ModuleNotFoundError: LightGBM is not installed.
        NotImplementedError: Several ranks train together.
    """
    lightgbm = optional("lightgbm")
    if workers() > 1:
        raise NotImplementedError(
            f"boosted trees are grown by one process; here are {workers()}. Train with "
            "model='linear' or 'mlp', or start one process."
        )
    validation.check()
    kind = {"objective": "binary" if classes == 1 else "multiclass", "num_class": classes}
    rows = lightgbm.Dataset(**_as_lightgbm(x, y, weights))
    seen = _as_lightgbm(validation.x, validation.y, validation.weights)
    held = lightgbm.Dataset(**seen, reference=rows)
    losses: dict[str, Any] = {}
    stop = lightgbm.early_stopping(STALE_TREES, verbose=False)
    start = perf_counter()
    grown = lightgbm.train(
        _SETTINGS | kind | {"seed": seed % 2**31},
        rows,
        TREES,
        valid_sets=[rows, held],
        valid_names=["train", "held out"],
        callbacks=[stop, lightgbm.record_evaluation(losses)],
    )
    kept = grown.best_iteration
    model = BoostedTrees(grown.model_to_string(num_iteration=kept)).eval()
    (loss,) = losses["train"].values()
    seconds = (perf_counter() - start) / len(loss)
    value, status = validation.metric(model)
    entry = {"epoch": kept, "step": kept, "loss": float(loss[kept - 1]), "validation": value}
    history = [entry | {"seconds": seconds, "status": status}]
    return Best(LOG_LOSS, {LOG_LOSS: Fitted(model, seconds, history, value, kept)}, kept)


def _as_lightgbm(x: Tensor, y: Tensor, weights: Tensor | None) -> dict[str, Any]:
    """Rows, labels and weights as LightGBM calls them."""
    own = None if weights is None else weights.cpu().numpy()
    return {"data": x.cpu().numpy(), "label": y.cpu().numpy(), "weight": own}
