"""The whole method on one page: train for the number you are judged by.

Suppose a detector may raise false alarms on 1 % of the negatives. What counts is how many positives
it then misses: the false negative rate (FNR) at a false positive rate (FPR) of 1 %. Cross-entropy
has never heard of that number. It tries to be right about everybody, and if the model cannot be, it
compromises in the wrong place. So let us train for the number itself, in three moves:

1. Find the threshold.  Sort the scores of the negatives and go down until 1 % of them are above.
2. Hold it.  When the scores move, the threshold must move along, or the FPR would not stay at 1 %.
   Nobody knows the threshold as a formula of the scores, but to hold the FPR it has to move by
   -(d fpr / d scores) / (d fpr / d threshold): the implicit function theorem, in one line of code.
3. Count the misses.  The FNR at this threshold is now a function of the scores and nothing else.
   Call backward() and step: one forward and one backward pass, as for cross-entropy.

This is Implicit rate-constrained optimization (Kumar, Narasimhan and Cotter, 2021).
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

FPR = 0.01


def find_threshold(negatives: Tensor) -> Tensor:
    """The lowest threshold with at most 1 % of the negatives above it."""
    allowed = int(FPR * len(negatives))
    return negatives.sort(descending=True).values[allowed]


def implicit(scores: Tensor, labels: Tensor) -> Tensor:
    """The FNR at FPR 1 %, with a gradient."""
    positives, negatives = scores[labels == 1], scores[labels == 0]
    width = scores.detach().std() / 20  # counting has no gradient, so every example counts softly

    t = find_threshold(negatives.detach())
    alarm = torch.sigmoid((negatives - t) / width)
    fpr = alarm.mean()
    slope = -(alarm * (1 - alarm)).mean().detach() / width  # d fpr / d threshold
    t = t - (fpr - fpr.detach()) / slope  # a Newton step of length zero: same t, right gradient

    return torch.sigmoid((t - positives) / width).mean()


def true_fnr(scores: Tensor, labels: Tensor) -> float:
    """The number we are judged by: exact counts, no softness."""
    missed = scores[labels == 1] <= find_threshold(scores[labels == 0])
    return 100 * missed.double().mean().item()


def draw(count: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two measurements of each example, and whether it is positive (one in ten is).

    Of the positives, 70 % stand out in the first measurement and 30 % in the second. But there the
    negatives vary three times as much: with 1 % false alarms, listening to it does not pay.
    """
    labels = (torch.rand(count, generator=random) < 0.1).float()
    noise = torch.randn(count, 2, generator=random)
    first_kind = torch.rand(count, 1, generator=random) < 0.7
    positives = noise + torch.where(first_kind, torch.tensor([3.0, 0.0]), torch.tensor([0.0, 6.0]))
    negatives = noise * torch.tensor([1.0, 3.0])
    return torch.where(labels[:, None] == 1, positives, negatives), labels


def train(x: Tensor, y: Tensor, *, hold_from: int, seed: int, steps: int = 600) -> nn.Linear:
    """A plain loop: cross-entropy at first, and from step ``hold_from`` on the FNR itself."""
    torch.manual_seed(seed)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for step in range(steps):
        rows = torch.randint(len(y), (1000,))
        criterion = implicit if step >= hold_from else cross_entropy
        loss = criterion(model(x[rows])[:, 0], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def main() -> None:
    torch.set_num_threads(1)  # for problems this small a second core only gets in the way
    print("FNR at FPR 1 % on new data   cross-entropy   implicit   best linear model")
    for seed in range(3):
        random = torch.Generator().manual_seed(seed)
        (x, y), (new_x, new_y) = draw(20_000, random), draw(50_000, random)
        models = [train(x, y, hold_from=step, seed=seed) for step in (600, 200)]
        with torch.no_grad():
            fnr = [true_fnr(model(new_x)[:, 0], new_y) for model in models]
        angles = torch.linspace(0, 2 * torch.pi, 181)  # every linear model, in steps of 2 degrees
        best = min(true_fnr(new_x @ torch.stack([a.cos(), a.sin()]), new_y) for a in angles)
        print(f"seed {seed}{fnr[0]:33.1f} %{fnr[1]:9.1f} %{best:18.1f} %")


if __name__ == "__main__":
    main()
