"""What all methods look like from outside: a step on some rows, and scores.

Every learner starts from the same weights and sees the same rows, so that runs are paired.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from setpoint import CrossEntropy, Implicit, Lagrangian, LastLayer, Problem
from setpoint.solvers import METHODS, Split
from setpoint.train import Shuffled

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A loss of scores, labels and the numbers of the rows (some peers remember every example)."""


class Learner(Protocol):
    """Anything that trains on rows of the data and gives scores."""

    def step(self, rows: Tensor) -> None:
        """One step of training."""

    def scores(self, x: Tensor) -> Any:
        """Scores ``[n]`` of features, in numpy."""


class TorchLearner:
    """A network, its loss and its optimizer."""

    def __init__(
        self, model: nn.Module, x: Tensor, y: Tensor, optimizer: torch.optim.Optimizer, loss: Loss
    ) -> None:
        self.model, self.x, self.y = model, x, y
        self.optimizer, self.loss = optimizer, loss

    def step(self, rows: Tensor) -> None:
        """Forward, loss, backward, update."""
        self.model.train()
        found = self.loss(self.model(self.x[rows]), self.y[rows], rows)
        self.optimizer.zero_grad()
        found.backward()
        self.optimizer.step()

    @torch.no_grad()
    def scores(self, x: Tensor) -> Any:
        """Scores in evaluation mode."""
        return self.model.eval()(x)[:, 0].numpy()


def network(inputs: int, hidden: tuple[int, ...] = (), seed: int = 0) -> nn.Sequential:
    """A linear model, or one with hidden layers; the same weights for the same seed."""
    torch.manual_seed(seed)
    widths = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 1))


def one_column(criterion: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    """A criterion of scores ``[n]`` and labels as a loss of the model's output."""
    return lambda scores, labels, _rows: criterion(scores[:, 0], labels)


OURS: dict[str, Callable[[Problem, int], nn.Module]] = {
    "cross-entropy": lambda _problem, _steps: CrossEntropy(),
    "Implicit": lambda problem, steps: Implicit(problem, steps=steps),
    "Lagrangian": lambda problem, _steps: Lagrangian(problem),
    "proxy-Lagrangian": lambda problem, _steps: Lagrangian(problem, proxy=True),
}


def ours(
    name: str, model: nn.Sequential, x: Tensor, y: Tensor, problem: Problem, steps: int, rate: float
) -> TorchLearner:
    """One of our methods, with Adam."""
    if name == "LastLayer":
        split = Split(model, model[-1])
        criterion: nn.Module = LastLayer(problem, split, steps=steps)
        made = torch.optim.Adam([*split.parameters(), *criterion.parameters()], rate)
        return TorchLearner(split, x, y, made, lambda out, labels, _: criterion(out, labels))
    if name == "ico":
        _, criterion = METHODS["ico"].build(model, problem, steps)
    else:
        criterion = OURS[name](problem, steps)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    return TorchLearner(model, x, y, optimizer, one_column(criterion))


def train(learner: Learner, rows: Iterator[Tensor], look: Callable[[int], None], every: int) -> int:
    """Step through batches, looking now and then; gives the number of steps."""
    step = 0
    for step, batch in enumerate(rows, start=1):
        learner.step(batch)
        if step % every == 0:
            look(step)
    return step


def shuffled(y: Tensor, size: int, steps: int, seed: int) -> Iterator[Tensor]:
    """The rows of ``steps`` batches; all rows for a size of 0."""
    if not size or size >= len(y):
        return (torch.arange(len(y)) for _ in range(steps))
    return (batch.rows for batch in Shuffled(size).draw(y, steps=steps, seed=seed))
