"""One method on one split: trained, chosen on validation, judged on the test part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from setpoint.compare.words import OK, ended, failed, inexpressible, missed, reason, untrained
from setpoint.datasets import Split
from setpoint.problems import Infeasible, Problem
from setpoint.solvers import Method
from setpoint.train import Best, Fitted, Validation, fit_best, score


@dataclass(frozen=True)
class Trial:
    """What a method reached on one split.

    Attributes:
        method: Its name.
        seed: Decides split, initial weights and batches.
        value: The goal's metric on the test part, at the threshold that is exact there: how well
            the model ranks. None if there is none.
        carried: The objective on the test part at the threshold chosen on validation: what a user
            gets. None for areas, and where ``value`` is None.
        validation: The metric on the validation part, by which rate and pass were chosen.
        learning_rate: The one of those tried that was chosen.
        steps: Training steps taken at one learning rate.
        ms_per_step: Median time of a step.
        status: ``ok``, or what went wrong: which bound was missed and by how much, that training
            failed (at which learning rate, though another may have worked) or its multipliers were
            diverging when it ended, or why the method cannot express the problem.
        scores: Of the test part, for curves.
    """

    method: str
    seed: int
    value: float | None
    carried: float | None
    validation: float | None
    learning_rate: float | None
    steps: int
    ms_per_step: float
    status: str
    scores: NDArray[Any] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Bench:
    """What all methods share on one split."""

    problem: Problem
    parts: Split
    make_model: Callable[[], nn.Module]
    steps: int
    batch_size: int
    learning_rates: Sequence[float]
    seed: int

    def run(self, name: str, members: Mapping[str, Method]) -> Trial:
        """Train at every rate, keep what validation prefers, judge it.

        Several members are a portfolio, from one start.
        """
        model = self.make_model()
        try:
            for method in members.values():
                method.build(model, self.problem, self.steps)
        except (NotImplementedError, TypeError, ValueError) as error:
            return self._nothing(name, inexpressible(error))
        except (ArithmeticError, RuntimeError) as error:
            return self._nothing(name, f"failed when it was made: {reason(error)}")
        judge = Validation(self.problem, *self._tensors("validation"))
        judge.check()  # data that cannot judge are no method's fault
        best: Fitted | None = None
        chosen, steps, troubles = None, 0, list[str]()
        for rate in self.learning_rates:
            try:
                trained = self._train(members, rate, judge)
            except (ArithmeticError, ValueError, RuntimeError) as error:
                troubles.append(failed(rate, error))  # scores that are not finite, singular systems
                continue
            fitted = trained.fitted[trained.name]
            if fitted.best is None:
                troubles.append(untrained(fitted, rate))
            elif best is None or judge.better(fitted.best, best.best):
                best, chosen, steps = fitted, rate, trained.steps
        if best is None or chosen is None:
            return self._nothing(name, troubles[0])
        judged = self._judged(name, best, chosen, steps)
        status = [judged.status] if judged.status != OK or not troubles else []
        return replace(judged, status="; ".join([*status, *troubles]))

    def _train(self, members: Mapping[str, Method], rate: float, judge: Validation) -> Best:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            model = self.make_model()
        return fit_best(
            model,
            members,
            *self._tensors("train"),
            steps=self.steps,
            batch_size=self.batch_size,
            learning_rate=rate,
            seed=self.seed,
            validation=judge,
        )

    def _tensors(self, part: str) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = getattr(self.parts, part)
        return torch.from_numpy(x), torch.from_numpy(y)

    def _judged(self, name: str, fitted: Fitted, rate: float, steps: int) -> Trial:
        scores, seen = (
            score(fitted.model, self._tensors(part)[0]).numpy() for part in ("test", "validation")
        )
        labels = self.parts.test.y
        value, status = None, OK
        try:
            value = self.problem.evaluate(scores, labels)
        except Infeasible as error:
            status = f"infeasible on the test part: {error}"
        carried = None
        if self.problem.swept is None and value is not None:
            thresholds = self.problem.choose(seen, self.parts.validation.y).thresholds
            carried = self.problem.evaluate(scores, labels, thresholds=thresholds)
            status = missed(self.problem, scores > thresholds[0], labels) or status
        speed = 1000 * fitted.seconds_per_step
        reached = (value, carried, fitted.best)
        status = ended(fitted, status)
        return Trial(name, self.seed, *reached, rate, steps, speed, status, scores)

    def _nothing(self, name: str, status: str) -> Trial:
        return Trial(name, self.seed, None, None, None, None, 0, float("nan"), status)
