"""skorch: our criteria are ordinary ``criterion=``; this net adds what a threshold needs.

``NeuralNetBinaryClassifier`` compares sigmoids with 0.5. A model trained for an operating point has
scores of no particular scale, and its threshold lies elsewhere: in ``decision_function`` units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint._extras import install_advice
from setpoint.integrations.shared import VALIDATION, goal_metrics
from setpoint.problems import GoalLike, as_problem

try:
    from skorch import NeuralNetBinaryClassifier
    from skorch.callbacks import EpochScoring
except ModuleNotFoundError as missing:
    raise install_advice(missing) from None


def both_classes(scores: Tensor) -> Tensor:
    """Sigmoids of both signs, ``[n, 2]``: ordered like the scores, but no probabilities."""
    flat = scores.reshape(-1)
    return torch.stack([torch.sigmoid(-flat), torch.sigmoid(flat)], 1)


class GoalScoring(EpochScoring):  # type: ignore[misc]
    """After every epoch the goal's value on the validation rows, in ``net.history``.

    Its key is ``setpoint/val/goal``, as in all integrations. It is the value at the best threshold
    of these rows; ``monitor="setpoint/val/goal_best"`` keeps the best epoch in a ``Checkpoint``.

    Args:
        goal: A problem, a bound or a sentence.
    """

    def __init__(self, goal: GoalLike = "fpr <= 0.01") -> None:
        problem = as_problem(goal, "GoalScoring")
        self.goal = goal
        name = f"{VALIDATION}goal"
        super().__init__(self.value, lower_is_better=not problem.maximize, name=name)

    def value(self, net: Any, X: Any, y: Any) -> float:
        """The goal's value of these rows."""
        labels = np.asarray(y).reshape(-1)
        scores = OperatingNet.decision_function(net, X)
        return goal_metrics(scores, labels, self.goal)[f"{VALIDATION}goal"]


class OperatingNet(NeuralNetBinaryClassifier):  # type: ignore[misc]
    """A binary classifier of skorch whose raw scores are seen by thresholds.

    ``OperatingNet(module, criterion=Implicit, criterion__problem=problem)``; wrap it in
    :class:`setpoint.CertifiedThreshold` for certified decisions. By itself ``predict`` uses the
    threshold that the criterion held last, on a batch of training data, without a certificate.

    Args:
        module: Gives one logit per example.
        *args: Those of ``NeuralNetBinaryClassifier``.
        criterion: A criterion of setpoint, with ``criterion__problem=`` and its other options.
        predict_nonlinearity: From scores to the two columns of ``predict_proba``.
        **kwargs: Those of ``NeuralNetBinaryClassifier``.

    Examples:
        >>> import torch
        >>> from setpoint import Implicit, fnr_at_fpr
        >>> options = {"criterion__problem": fnr_at_fpr(0.1), "max_epochs": 2, "verbose": 0}
        >>> net = OperatingNet(torch.nn.Linear, module__in_features=2, module__out_features=1,
        ...                    criterion=Implicit, **options)
        >>> x = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
        >>> net.fit(x, (x[:, 0] > 1).astype("float32")).decision_function(x).shape
        (200,)
    """

    def __init__(
        self,
        module: Any,
        *args: Any,
        criterion: Any,
        predict_nonlinearity: Any = both_classes,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            module,
            *args,
            criterion=criterion,
            predict_nonlinearity=predict_nonlinearity,
            **kwargs,
        )

    def check_data(self, X: Any, y: Any) -> None:
        """As skorch, and labels must be numbers.

        Raises:
            TypeError: Labels are texts; the message shows how to encode them.
        """
        if y is not None and not isinstance(y, Tensor) and np.asarray(y).dtype.kind in "OUST":
            seen = sorted({str(label) for label in y})
            raise TypeError(
                f"skorch trains on labels 0 and 1; got texts ({', '.join(map(repr, seen[:3]))}). "
                f"Encode them: y = (np.asarray(y) == {seen[-1]!r}).astype(np.float32)."
            )
        super().check_data(X, y)

    def decision_function(self, X: Any) -> NDArray[np.floating[Any]]:
        """The raw score of each row, ``[n]``."""
        batches = [out[0] if isinstance(out, tuple) else out for out in self.forward_iter(X)]
        return np.concatenate([batch.detach().cpu().numpy().reshape(-1) for batch in batches])

    def predict(self, X: Any) -> NDArray[np.integer[Any]]:
        """Whether each score is above the criterion's last threshold, as 0 or 1.

        Above 0 with a criterion that has none, such as cross-entropy.
        """
        thresholds = getattr(self.criterion_, "thresholds", None)
        count = 0 if thresholds is None else thresholds.numel()
        if count > 1:
            raise ValueError(
                f"The criterion holds {count} thresholds, so there is no one decision to predict. "
                "Choose one for what you decide: CertifiedThreshold(net, 'fpr <= 0.01'), or "
                "compare net.decision_function(X) with the one you mean. To train, leave out the "
                "accuracy of every epoch: OperatingNet(..., callbacks__valid_acc=None)."
            )
        at = 0.0 if thresholds is None or not count else float(thresholds)
        return (self.decision_function(X) > at).astype(np.int64)
