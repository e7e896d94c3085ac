"""What to try next, in words: the rule of thumb of docs/when_does_it_pay.md."""

from __future__ import annotations


def next_steps(
    limit: str, noise: float, support: tuple[float, float], *, few: bool, tied: bool
) -> tuple[str, ...]:
    """Advice for one diagnosis, the most promising first.

    Args:
        limit: What stands in the way.
        noise: The standard error of the metric.
        support: Effective positives and negatives at the threshold.
        few: Whether these are few.
        tied: Whether all scores are the same.
    """
    rarer = "positives" if support[0] <= support[1] else "negatives"
    first = []
    if tied:
        first.append("All scores are the same: the model has learnt nothing, or is saturated.")
    elif few:
        first.append(
            f"Too few {rarer} at the operating point ({min(support):.2g} effective ones): label "
            "more of them, or choose a less extreme target."
        )
    return (*first, *_by_limit(limit, noise))


def _by_limit(limit: str, noise: float) -> tuple[str, ...]:
    told_apart = f"Differences under {2 * noise:.2g} between two models are noise here."
    if limit == "capacity":
        return (
            "Train for the goal: Implicit(problem, steps=...). The model does not even fit its "
            "training data at this point, so it pays to spend what it can where it counts.",
            "A larger model, or better features, would help any loss.",
            told_apart,
        )
    if limit == "data":
        return (
            "More examples, augmentation or a smaller model: the training data are fitted much "
            "better than new data, and no loss adds information.",
            "Averaged weights and early stopping on the goal's own metric cost nothing. Training "
            "for the goal is then level with cross-entropy, not ahead.",
            told_apart,
        )
    if limit == "nothing":
        return (
            "Nothing is left to gain on these data: every loss is as good. Judge by a stricter "
            "target, or by harder or more examples.",
        )
    if limit == "noise":
        return (told_apart,)
    return (
        "Pass train=(scores, labels) of the training data: it tells a weak model from few data.",
        told_apart,
    )
