"""Faces and objects in folds, and the ways to train one small network on them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.common.images import ImageParts, split_task
from benchmarks.common.networks import SmallCNN, flipped
from benchmarks.peers.learners import OURS, Loss, TorchLearner, one_column, shuffled
from setpoint import Implicit, LastLayer, Pairwise, Problem, fnr_at_fpr, roc_auc
from setpoint.solvers import METHODS, Penalty, Split

TASKS = {
    "fashion": ("Shirt", "Pullover", "Coat", "T-shirt/top"),
    "celeba": (
        "High_Cheekbones",
        "Smiling",
        "Wearing_Lipstick",
        "Heavy_Makeup",
        "Black_Hair",
        "Blond_Hair",
    ),
    "cifar10": ("automobile", "deer", "horse"),
}
"""Four garments that look alike; the attributes of the papers' tables; three of ten objects."""
GOALS: dict[str, Problem] = {
    **{f"FNR at FPR {r:.0%}": fnr_at_fpr(r) for r in (0.01, 0.02, 0.05, 0.1)},
    **{f"ROC-AUC to {r:.0%}": roc_auc(fpr=(0.0, r)) for r in (0.01, 0.02, 0.05, 0.1, 0.2)},
}
FOLDS, BATCH = 5, 256
WIDTHS = (8, 16, 32, 32)  # 15,497 weights: 200 steps take five seconds


def fold(task: str, number: int) -> ImageParts:
    """Every image is tested once in five folds; CIFAR-10 has test images of its own."""

    def rows(count: int) -> tuple[Tensor, Tensor, Tensor]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(2000))
        size = count // FOLDS
        held = order[number * size : (number + 1) * size]
        rest = torch.cat([order[: number * size], order[(number + 1) * size :]])
        cut = len(rest) - len(rest) // 5
        return rest[:cut], rest[cut:], held

    return split_task(task, rows)


class Mirrored(TorchLearner):
    """A learner whose images are mirrored at random, the same for all methods."""

    coins: torch.Generator

    def step(self, rows: Tensor) -> None:
        """A step on images some of which are mirrored."""
        images = flipped(self.x[rows], self.coins).contiguous(memory_format=torch.channels_last)
        found = self.loss(self.model(images), self.y[rows], rows)
        self.optimizer.zero_grad()
        found.backward()
        self.optimizer.step()


def _implicit(problem: Problem, steps: int, positives: float) -> Loss:
    """`Implicit` on its own batches: weights undo what `Stratified` did to the classes."""
    criterion = Implicit(problem, steps=steps)

    def loss(scores: Tensor, labels: Tensor, _rows: Tensor) -> Tensor:
        drawn = float(labels.float().mean())
        undone = torch.where(labels > 0, positives / drawn, (1 - positives) / (1 - drawn))
        return criterion(scores[:, 0], labels, resampling=undone)

    return loss


def _criterion(name: str, model: nn.Module, problem: Problem, steps: int, positives: float) -> Any:
    """What is trained, its loss, and weights of the loss's own."""
    if name == "Implicit":
        return model, _implicit(problem, steps, positives), []
    if name in OURS:
        return model, one_column(OURS[name](problem, steps)), []
    if name == "resampled":
        return model, one_column(OURS["cross-entropy"](problem, steps)), []
    if name == "Pairwise":
        return model, one_column(Pairwise(problem)), []
    split = Split(model, "fc")
    body = {"LastLayer 1": None, "LastLayer 2": Penalty(), "ablation": Penalty(everywhere=True)}
    criterion = LastLayer(problem, split, steps=steps, body=body[name])
    return split, lambda out, labels, _: criterion(out, labels), list(criterion.parameters())


def learner(name: str, data: ImageParts, goal: str, steps: int, rate: float, seed: int) -> Mirrored:
    """One method on one fold; the same start and the same coins for all."""
    x, y = data.train
    torch.manual_seed(seed)
    model = SmallCNN(widths=WIDTHS, channels=x.shape[1]).to(memory_format=torch.channels_last)
    if name == "LibAUC":
        from benchmarks.peers import with_libauc

        made = with_libauc.learner("pAUC-CVaR + SOPA", model, x, y, rate, beta=0.1)
        found = Mirrored(model, x, y, made.optimizer, made.loss)
    else:
        trained, loss, more = _criterion(name, model, GOALS[goal], steps, float(y.float().mean()))
        optimizer = torch.optim.Adam([*trained.parameters(), *more], rate)
        found = Mirrored(trained, x, y, optimizer, loss)
    found.coins = torch.Generator().manual_seed(seed)
    return found


def batches(name: str, y: Tensor, steps: int, seed: int) -> Iterator[Tensor]:
    """The rows of every step."""
    if name == "LibAUC":
        from benchmarks.peers import with_libauc

        return with_libauc.batches(y, BATCH, steps, seed)
    if name in ("resampled", "Implicit"):  # a fifth of the rarer class, at least
        return (
            batch.rows
            for batch in METHODS["resampled"].sampler(BATCH).draw(y, steps=steps, seed=seed)
        )
    return shuffled(y, BATCH, steps, seed)


DIRECT = (
    "Implicit",
    "LastLayer 1",
    "LastLayer 2",
    "ablation",
    "Lagrangian",
    "proxy-Lagrangian",
    "Pairwise",
)
"""Trained for every goal anew."""
SHARED = ("cross-entropy", "resampled", "LibAUC")
"""Trained once; the goals only judge."""
