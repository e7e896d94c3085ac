"""LibAUC 2.0.1: areas under curves, each loss with the optimizer and the sampler it was made for.

As its tutorials have it: probabilities go in, every example is known by its index, batches come
from ``DualSampler``. It has no loss for an operating point: for FNR at an FPR the nearest is the
partial area up to that FPR, for PR-AUC the whole average precision, and then a threshold.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.peers.learners import TorchLearner

SHARE = 0.2  # of positives in a batch, as all other resampling in these benchmarks


def _import_torchvision() -> None:
    """Let ``import torchvision`` pass where its compiled operators do not fit this torch.

    LibAUC's sampler imports it for one ``isinstance``; nothing here calls an operator of it.
    """
    try:
        import torchvision
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        operators = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _import_torchvision.kept = operators  # type: ignore[attr-defined]  # or it is forgotten
        import torchvision  # noqa: F401


_import_torchvision()
from libauc.losses import APLoss, AUCMLoss, pAUC_CVaR_Loss  # noqa: E402
from libauc.optimizers import PESG, SOAP, SOPA  # noqa: E402
from libauc.sampler import DualSampler  # noqa: E402


def _aucm(y: Tensor, _settings: dict[str, float]) -> nn.Module:
    return AUCMLoss()


def _partial(y: Tensor, settings: dict[str, float]) -> nn.Module:
    return pAUC_CVaR_Loss(data_len=len(y), pos_len=int(y.sum()), **settings)


def _precision(y: Tensor, settings: dict[str, float]) -> nn.Module:
    return APLoss(data_len=len(y), **settings)


LOSSES: dict[str, tuple[Callable[..., nn.Module], Any]] = {
    "AUCM + PESG": (_aucm, PESG),
    "pAUC-CVaR + SOPA": (_partial, SOPA),
    "AP + SOAP": (_precision, SOAP),
}


def learner(
    name: str, model: nn.Module, x: Tensor, y: Tensor, rate: float, **settings: float
) -> TorchLearner:
    """A loss of LibAUC with its own optimizer; ``beta`` is the FPR of the partial area."""
    build, optimizer = LOSSES[name]
    loss = build(y, settings)
    made = optimizer(model.parameters(), loss_fn=loss, lr=rate, verbose=False)

    def of_probabilities(scores: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        return loss(scores.sigmoid(), labels.float()[:, None], index=rows)

    return TorchLearner(model, x, y, made, of_probabilities)


def batches(y: Tensor, size: int, steps: int, seed: int) -> Iterator[Tensor]:
    """Rows by LibAUC's own sampler, pass after pass."""
    sampler = DualSampler(
        None, batch_size=size, labels=y.numpy(), sampling_rate=SHARE, random_seed=seed
    )

    def endless() -> Iterator[Tensor]:
        while True:
            rows = torch.as_tensor(list(sampler))
            if len(rows) < size:
                raise ValueError(f"DualSampler gives no batch of {size} from {len(y)} examples.")
            yield from rows[: len(rows) // size * size].reshape(-1, size)

    return islice(endless(), steps)
