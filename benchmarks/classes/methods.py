"""What is trained: a loss and its batches, the same network, steps, optimiser and average."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from setpoint import Implicit, Problem, Sigmoid, lowest, macro, recall
from setpoint.solvers.samplers import Classwise, Shuffled

Criterion = Callable[..., Tensor]
BALANCED = Problem(maximize=macro(recall))
WORST = Problem(maximize=lowest(recall))


class Method(NamedTuple):
    """How to make the criterion from the class shares and the number of steps; the batches."""

    criterion: Callable[[Tensor, int], Criterion]
    classwise: bool = False

    def sampler(self, size: int) -> Shuffled | Classwise:
        """Natural batches, or some of every class in each."""
        return Classwise(size, least=6) if self.classwise else Shuffled(size)


def weighted(priors: Tensor, steps: int) -> Criterion:
    """Every class weighs the same."""
    weights = (1 / priors) / (1 / priors).mean()
    return lambda scores, labels: cross_entropy(scores, labels, weight=weights)


def adjusted(priors: Tensor, steps: int = 0) -> Criterion:
    """Logit adjustment (Menon et al., 2021): scores plus the logarithm of the shares."""
    offsets = priors.log()
    return lambda scores, labels: cross_entropy(scores + offsets, labels)


METHODS = {
    "cross-entropy": Method(lambda priors, steps: cross_entropy),
    "class weights": Method(weighted),
    "logit adjustment": Method(adjusted),
    "resampled": Method(lambda priors, steps: cross_entropy, classwise=True),
    "implicit, macro recall": Method(lambda priors, steps: Implicit(BALANCED, steps=steps)),
    "implicit, worst recall": Method(lambda priors, steps: Implicit(WORST, steps=steps)),
    "implicit, macro recall, classwise": Method(
        lambda priors, steps: Implicit(BALANCED, steps=steps), classwise=True
    ),
    "implicit, macro recall, main fades out": Method(
        lambda priors, steps: Implicit(BALANCED, steps=steps, end=0.0)
    ),
    "implicit, macro recall, wide softmax": Method(
        lambda priors, steps: Implicit(BALANCED, steps=steps, step=Sigmoid(width=0.25))
    ),
    "implicit, macro recall, plain main": Method(
        lambda priors, steps: Implicit(BALANCED, steps=steps, main="cross_entropy")
    ),
}


def loss_of(criterion: Criterion, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """The loss of a batch; only ours is told how the batch was drawn."""
    if isinstance(criterion, torch.nn.Module):
        return criterion(scores, labels, resampling=weights)
    return criterion(scores, labels)
