"""The peers that have a form of Table 5's goal: what they train, on which rows, in which grid."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from benchmarks.peers.learners import Learner, network, shuffled
from benchmarks.peers.published import DUALS, GOAL, RATES, TFCO_RATES
from benchmarks.points.goals import GOALS
from benchmarks.points.methods import Column

Made = tuple[Learner, Iterator[Tensor]]
kept: dict[Any, Any] = {}  # TFCO's compiled steps, by the shape of the data


def _tfco(x: Tensor, y: Tensor, column: Column, steps: int, seed: int) -> Made:
    from benchmarks.peers.with_tfco import TFCOLearner

    model, dual = network(x.shape[1], seed=seed), DUALS[column.setting]
    if x.shape not in kept:
        kept.clear()
        made = TFCOLearner(model, x, y, GOALS[GOAL], column.rate, size=len(y))
        kept[x.shape] = made
    kept[x.shape].restart(x, y, model, column.rate, dual)
    return kept[x.shape], shuffled(y, 0, steps, seed)


def _cooper(x: Tensor, y: Tensor, column: Column, steps: int, seed: int) -> Made:
    from benchmarks.peers.with_cooper import CooperLearner

    model, dual = network(x.shape[1], seed=seed), DUALS[column.setting]
    made = CooperLearner(model, x, y, GOALS[GOAL], column.rate, dual_rate=dual)
    return made, shuffled(y, 0, steps, seed)


def _libauc(x: Tensor, y: Tensor, column: Column, steps: int, seed: int) -> Made:
    from benchmarks.peers import with_libauc

    made = with_libauc.learner("AP + SOAP", network(x.shape[1], seed=seed), x, y, column.rate)
    return made, with_libauc.batches(y, min(512, len(y) // 4), steps, seed)  # it is for batches


PEERS: dict[str, tuple[list[Column], Callable[..., Any]]] = {
    "TFCO": ([Column("TFCO", GOAL, dual, r) for dual in range(3) for r in TFCO_RATES], _tfco),
    "Cooper": ([Column("Cooper", GOAL, dual, 0.1) for dual in range(3)], _cooper),
    "LibAUC AP": ([Column("LibAUC AP", GOAL, 0, r) for r in RATES], _libauc),
}
