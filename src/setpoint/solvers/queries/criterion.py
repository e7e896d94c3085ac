"""Implicit thresholds of queries (section 6.3 of the paper): one for each, no multiplier for any.

A query's threshold depends on its own documents only, so all are held at once: one sort, one pass
over the documents laid end to end, one backward pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint.axes.segments import queries_among
from setpoint.distributed import Reduction
from setpoint.problems import Problem
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.mix import Loss, attach, example_weights, mix
from setpoint.solvers.queries.holding import Holder
from setpoint.solvers.queries.last import LastQueries
from setpoint.solvers.queries.losses import LISTWISE, main_gradient
from setpoint.solvers.queries.parts import one_score_each
from setpoint.steps import Sigmoid, Step


class QueryImplicit(Implicit):
    """:class:`setpoint.Implicit` for a problem per query; made by ``Implicit(problem)``.

    The loss is the mean over the queries that have both relevant and other documents; the rest have
    nothing to rank. A query shorter than ``k`` is accepted whole. Widths are relative to the spread
    of scores within a query: nothing depends on offsets between queries.

    Args:
        problem: What is wanted of every query, such as ``precision_at_k(10).per("query")``.
        main: The loss that shapes features: ``"listwise"`` (within the query, every relevant
            document against the others), ``"focal"``, ``"cross_entropy"``, or a callable
            ``loss(scores, labels)``; it gets ``queries=`` and ``weights=`` too if it takes them.
        share, steps, flatness, slope_floor, strict, reduction: As for Implicit.
        end: The share that the fade ends with: with so few documents around each threshold, the
            main loss is needed to the last (benchmarks/ranking).
        step: The soft step. A query has tens of documents, not hundreds: its band is wider.
        widening: As for Implicit.
        memory, correct_every, correction_batches, follow: Not for queries: a threshold is found on
            the documents of its query, whenever it is seen.
    """

    _last: LastQueries | None  # type: ignore[assignment]

    def __init__(
        self,
        problem: Problem,
        *,
        main: str | Loss = LISTWISE,
        share: float | Literal["fade"] = "fade",
        steps: int | None = None,
        end: float = 0.4,
        step: Step = Sigmoid(width=0.2),  # noqa: B008 (frozen)
        widening: float = 2.0,
        memory: int = 0,
        correct_every: int = 1,
        correction_batches: int = 1,
        follow: None = None,
        flatness: float = 0.0,
        slope_floor: float = 0.0,
        strict: bool = False,
        reduction: Reduction | None = None,
    ) -> None:
        if memory or correct_every != 1 or correction_batches != 1 or follow is not None:
            raise ValueError(
                "A query's threshold is found on its own documents whenever it is seen: leave out "
                "memory=, correct_every=, correction_batches= and follow=."
            )
        super().__init__(
            problem,
            main="focal" if main == LISTWISE else main,
            share=share,
            steps=steps,
            end=end,
            step=step,
            widening=widening,
            flatness=flatness,
            slope_floor=slope_floor,
            strict=strict,
            reduction=reduction,
        )
        self.main = main

    def forward(  # type: ignore[override]
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        queries: Any = None,
        weights: Tensor | None = None,
        groups: Any = None,
    ) -> Tensor:
        """The loss of a batch of whole queries.

        Args:
            scores: Logits, ``[n]`` or ``[n, 1]``.
            labels: 0 or 1, relevant or not, in the shape of the scores.
            queries: The query of each document, ``[n]``: numbers or strings, in any order. It may
                also be the column of this name in ``groups``.
            weights: Optional, ``[n]``; weight 0 is absent.
            groups: A column of group values, or a dict of columns, for problems with slices.
        """
        flat = one_score_each(scores)
        if flat.numel() == 0:
            return scores.sum()
        if weights is not None:
            weights = example_weights(weights, scores)
        queries = queries_among(self.problem.query, queries, groups)
        given = {"labels": labels, "weights": weights, "groups": groups, "queries": queries}
        learns = torch.is_grad_enabled() and scores.requires_grad
        share = self.current_share()
        exact = torch.promote_types(scores.dtype, torch.float32)
        listwise = self.share != 0 and self.main == LISTWISE
        whole = self._holder(share).whole(flat, given, exact if learns else None, listwise)
        value = whole.value.to(exact)
        if torch.compiler.is_compiling():  # where nothing can raise, NaN stays NaN
            value = value + (0 * flat).sum().to(exact)
        counts = (whole.present, whole.judged, whole.missed)
        self._last = LastQueries(self.problem, flat, given, value, *counts, share)
        if not learns:
            return value
        if self.training:  # a look at validation data is not a step
            self._count_step(whole.thresholds)
        gradient = whole.implicit
        if self.share != 0:
            main = whole.listwise if listwise else main_gradient(self.main, scores, given)
            gradient = mix(main[None], gradient[None], share)[0]
            self._last = replace(self._last, gradient=gradient)
            gradient = torch.where(gradient.sum().isfinite(), gradient, 0.0)
        return attach(scores, value, gradient.reshape(scores.shape))

    def _holder(self, share: Tensor | float) -> Holder:
        """How thresholds are held while the main loss has this share."""
        return Holder(
            self.problem,
            self._targets,
            self._slices,
            self.step,
            self.widening**share,
            self.flatness,
            self.slope_floor,
        )

    def _count_step(self, thresholds: Tensor) -> None:
        """A step was taken: keep what the next one, or a checkpoint, needs."""
        assert self._last is not None
        if self.strict and not torch.compiler.is_compiling():
            self._last.raise_if_not_held()
        if self.thresholds.shape != thresholds.shape:
            self.thresholds = torch.empty_like(thresholds)
        self.thresholds.copy_(thresholds)
        self.step_count.add_(1)

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers; rates are means over queries."""
        return {"status": self.status} if self._last is None else self._last.stats()
