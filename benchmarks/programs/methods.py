"""Who takes part in the speed tables, and how large a program each is asked to solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Build = Callable[[str, Tensor], Callable[[Tensor], Tensor]]


@dataclass(frozen=True)
class Method:
    """A way to a loss.

    Attributes:
        build: From metric and labels to a loss of scores.
        metrics: What it can do.
        dense: Whether it holds its matrices as dense arrays, which bounds the size.
        gradient: Whether scores get the gradient of the program's optimum.
    """

    build: Build
    metrics: tuple[str, ...] = ("auc", "f1")
    dense: bool = False
    gradient: bool = True


def ours(**options: object) -> Build:
    """The layer with these options."""

    def build(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
        from benchmarks.programs.ours import build_layer

        return build_layer(metric, labels, **options)

    return build


def closed(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """The loss without a program."""
    from benchmarks.programs.ours import build

    return build(metric, labels)


def peer(module: str, function: str = "build", constant: str | None = None) -> Build:
    """A peer's adapter, imported when it is used; ``constant`` names its setting."""

    def build(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
        from importlib import import_module

        adapter = import_module(f"benchmarks.programs.peers.{module}")
        more = () if constant is None else (getattr(adapter, constant),)
        return getattr(adapter, function)(metric, labels, *more)

    return build


METHODS = {
    "fast path": Method(closed),
    "layer": Method(ours()),
    "layer, value_only": Method(ours(value_only=True)),
    "layer, newton": Method(ours(solver="newton")),
    "layer, dense A": Method(ours(dense=True), dense=True),
    "HiGHS, duals": Method(peer("highs")),
    "HiGHS + blackbox": Method(peer("highs", "build_blackbox"), gradient=False),
    "cvxpylayers": Method(peer("cvx", constant="CHOSEN")),
    "cvxpylayers + Clarabel": Method(peer("cvx", constant="CLARABEL")),
    "cvxpylayers + Clarabel, 1e-12": Method(peer("cvx", constant="TIGHT")),
    "qpth": Method(peer("qp"), dense=True),
    "published recipe": Method(peer("published"), dense=True),
    "AP-Perf": Method(peer("adversarial"), metrics=("f1",), gradient=False),  # another objective
}


def dense_megabytes(metric: str, n: int) -> float:
    """One dense copy of the constraint matrix in float64."""
    p = n // 2
    rows, columns = (2 * p * (n - p), p * (n - p)) if metric == "auc" else (2 * n + 1, n + 1)
    return 8e-6 * rows * columns
