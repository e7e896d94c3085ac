"""TFCO 0.2 in the form that still runs: ``create_lagrangian_loss`` in a compiled step.

It wants an environment of its own, with ``tensorflow-cpu`` and
``tensorflow-constrained-optimization``.
"""

import numpy as np

from benchmarks.fairness.data import Part

RATE, DUAL = 0.03, 1.0


def lagrangian(
    train: Part, test: Part, rule: str, tolerance: float, seed: int, steps: int
) -> np.ndarray:
    """Full batches, hinge for the weights, true rates for nobody: its plain Lagrangian."""
    import tensorflow as tf
    import tensorflow_constrained_optimization as tfco

    tf.random.set_seed(seed)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    weights = tf.Variable(tf.zeros([train.x.shape[1], 1]))
    bias = tf.Variable(tf.zeros([1]))
    x, y = tf.constant(train.x), tf.constant(train.y.astype(np.float32))
    context = tfco.rate_context(lambda: (x @ weights + bias)[:, 0], labels=lambda: y)
    rate = tfco.positive_prediction_rate
    rate = rate if rule == "demographic parity" else tfco.true_positive_rate
    subsets = []
    for name in sorted(set(train.g)):
        mask = tf.constant(train.g == name)
        subsets.append(rate(context.subset(lambda mask=mask: mask)))
    bounds = [a - b <= tolerance for a in subsets for b in subsets if a is not b]
    problem = tfco.RateMinimizationProblem(tfco.error_rate(context), bounds)
    loss, update, multipliers = tfco.create_lagrangian_loss(problem, dual_scale=DUAL)
    loss(), update()
    optimizer = tf.keras.optimizers.Adam(RATE)
    variables = [weights, bias, *problem.trainable_variables, multipliers]

    @tf.function
    def step() -> None:
        update()
        with tf.GradientTape() as tape:
            value = loss()
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))

    for _ in range(steps):
        step()
    return ((test.x @ weights.numpy() + bias.numpy())[:, 0] > 0).astype(float)
