"""What to try next, in words: the rule of thumb of docs/when_does_it_pay.md."""

from __future__ import annotations

from setpoint.problems import Problem


def next_steps(
    limit: str, problem: Problem, value: float, noise: float, effective: tuple[float, float]
) -> tuple[str, ...]:
    """Advice for one diagnosis, the most promising first."""
    rarer = "positives" if effective[0] <= effective[1] else "negatives"
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
        return (
            f"Too few {rarer} at the operating point ({min(effective):.2g} effective ones): label "
            "more of them, or choose a less extreme target.",
            told_apart,
        )
    return (
        "Pass train=(scores, labels) of the training data: it tells a weak model from few data.",
        told_apart,
    )
