"""TFCO 0.2 on TensorFlow: Lagrangians of rates, in the one form of its API that still runs.

``create_lagrangian_loss`` (or the proxy-Lagrangian) and a gradient tape: its optimizers no longer
work with Keras 3. Areas are sums of ``precision_at_recall``, as in its PR-AUC notebook, with the
cross-entropy surrogate that the ICO paper names; FNR at an FPR is a rate with a bound, with its
default losses (hinge for weights, true counts for multipliers).
"""

import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
import tensorflow_constrained_optimization as tfco
from torch import Tensor, nn

from setpoint import Problem

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


def rate_problem(problem: Problem, scores: Any, labels: Any) -> Any:
    """Our problem in TFCO's rates; two kinds are known to it."""
    context = tfco.rate_context(scores, labels=labels)
    levels = [target.level for (target,) in problem.points]
    what, held = str(problem.objective), str(problem.points[0][0].expression)
    if (what, held) == ("precision", "recall"):
        loss = tfco.SoftmaxCrossEntropyLoss()
        parts = [tfco.precision_at_recall(context, level, penalty_loss=loss) for level in levels]
        return tfco.RateMinimizationProblem(-sum(parts[1:], parts[0]) / len(parts))
    if (what, held) == ("fnr", "fpr") and len(levels) == 1:
        bound = tfco.false_positive_rate(context) <= levels[0]
        return tfco.RateMinimizationProblem(tfco.false_negative_rate(context), [bound])
    raise ValueError(f"No form of `{problem}` for TFCO is written here.")


class TFCOLearner:
    """A linear model or network trained by TFCO, from the weights of a torch model.

    The features live in TensorFlow; a batch is gathered inside the step. Compiled with
    ``tf.function`` unless ``eager``, which is how TFCO's README runs it.
    """

    def __init__(
        self,
        model: nn.Sequential,
        x: Tensor,
        y: Tensor,
        problem: Problem,
        rate: float,
        *,
        size: int,
        dual_scale: float = 1.0,
        proxy: bool = False,
        eager: bool = False,
    ) -> None:
        self.weights = [tf.Variable(p.detach().numpy()) for p in model.parameters()]
        self.x = tf.Variable(x.numpy(), trainable=False)
        self.y = tf.Variable(y.numpy().astype("float32"), trainable=False)
        self.rows = tf.Variable(tf.zeros(size, tf.int32), trainable=False)
        self.whole = size == len(y)  # full batches: nothing is gathered
        self.dual_scale = tf.Variable(dual_scale, trainable=False)
        rates = rate_problem(problem, lambda: self._forward(self._batch()), self._labels)
        create = tfco.create_proxy_lagrangian_loss if proxy else tfco.create_lagrangian_loss
        self.loss, self.prepare, multipliers = create(rates, dual_scale=self.dual_scale)
        self.loss(), self.prepare()  # TFCO makes its variables when it is first called
        found = [*self.weights, *rates.trainable_variables, multipliers]
        self.trained = list({id(v): v for v in found}.values())
        self.optimizer = tf.keras.optimizers.Adam(rate)
        self.optimizer.build(self.trained)
        self.state = [*self.trained, *self.optimizer.variables, *rates.variables]
        self.start = [tf.identity(v) for v in self.state]
        self._update = self._step if eager else tf.function(self._step)

    def restart(self, x: Tensor, y: Tensor, model: nn.Module, rate: float, dual: float) -> None:
        """A new run on data of the same shape: compiling takes longer than many runs."""
        for variable, value in zip(self.state, self.start, strict=True):
            variable.assign(value)
        for variable, weight in zip(self.weights, model.parameters(), strict=True):
            variable.assign(weight.detach().numpy())
        self.x.assign(x.numpy())
        self.y.assign(y.numpy().astype("float32"))
        self.optimizer.learning_rate.assign(rate)
        self.dual_scale.assign(dual)

    def _batch(self) -> Any:
        return self.x if self.whole else tf.gather(self.x, self.rows)

    def _labels(self) -> Any:
        return self.y if self.whole else tf.gather(self.y, self.rows)

    def _forward(self, x: Any) -> Any:
        last = len(self.weights) - 2
        for place in range(0, last + 2, 2):
            x = tf.matmul(x, self.weights[place], transpose_b=True) + self.weights[place + 1]
            x = x if place == last else tf.nn.relu(x)
        return x[:, 0]

    def _step(self) -> None:
        self.prepare()
        with tf.GradientTape() as tape:
            loss = self.loss()
        gradients = tape.gradient(loss, self.trained)
        self.optimizer.apply_gradients(zip(gradients, self.trained, strict=True))

    def step(self, rows: Tensor) -> None:
        """Choose the rows, then one step."""
        if not self.whole:
            self.rows.assign(rows.numpy().astype("int32"))
        self._update()

    def scores(self, x: Tensor) -> Any:
        """Scores of the model."""
        return self._forward(tf.constant(x.numpy())).numpy()
