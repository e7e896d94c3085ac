"""What ranks are told when something is wrong, and other ways of using several of them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from setpoint import Implicit, LastLayer, RateBarrier, fnr_at_fpr
from setpoint.distributed import gather_rows
from setpoint.losses import auc_loss

BOUND = fnr_at_fpr(0.2)
SIZES = (3, 0, 30, 17)


def data(part=slice(None)):
    r = torch.Generator().manual_seed(7)
    y = (torch.rand(sum(SIZES), generator=r) < 0.4).long()
    x = torch.randn(sum(SIZES), 4, generator=r, dtype=torch.float64) + y[:, None]
    return x[part], y[part]


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double()


def told(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def gradients(model):
    return [p.grad.clone() for p in model.parameters()]


def messages(rank):
    """Every way to be wrong, on all ranks at the same time."""
    part = slice(sum(SIZES[:rank]), sum(SIZES[: rank + 1]))
    (x, y), model = data(part), network()
    scores = model(x).squeeze(-1)
    criterion = Implicit(BOUND, reduction="mean")
    bad = scores.detach() + torch.where(torch.arange(len(y)) == 4, torch.nan, 0.0)
    more = {"weights": torch.ones(len(y))} if rank == 2 else {}
    return {
        "not told": told(lambda: Implicit(BOUND)(scores, y)),
        "not wrapped": told(lambda: Implicit(BOUND).attach(model)),
        "no model": told(lambda: Implicit(BOUND).attach("model")),
        "a function": told(lambda: auc_loss(scores, y)),
        "own weights": told(
            lambda: LastLayer(BOUND, model[2]).attach(DistributedDataParallel(model))
        ),
        "barrier": told(lambda: _barrier(model, scores, y)),
        "different columns": told(lambda: criterion(scores, y, **more)),
        "a bad batch": told(lambda: criterion(scores, y[1:] if rank == 2 else y)),
        "no numbers": told(lambda: criterion(bad if rank == 3 else scores.detach(), y)),
        "said before": Implicit(BOUND, reduction="sum").attach(model).reduction,
        "said and wrapped": Implicit(BOUND, reduction="none")
        .attach(DistributedDataParallel(model))
        .reduction,
        "wrapped": Implicit(BOUND).attach(DistributedDataParallel(model)).reduction,
        "a word": told(lambda: Implicit(BOUND, reduction="average")),
    }


def _barrier(model, scores, y):
    criterion = RateBarrier(BOUND, model.parameters())
    criterion.reduction = "sum"
    return criterion(scores, y)


def numbers(rank):
    """Sums instead of means, ranks by themselves, nobody with rows, micro-batches, selection."""
    part = slice(sum(SIZES[:rank]), sum(SIZES[: rank + 1]))
    x, y = data(part)
    found = {}
    model = network()
    Implicit(BOUND, reduction="sum")(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    found["sum"] = gradients(model)
    model = network()
    loss = Implicit(BOUND, reduction="none")(model(data()[0]), data()[1])
    loss.backward()
    found["none"] = gradients(model)
    found["empty"] = Implicit(BOUND, reduction="mean")(torch.zeros(0), torch.zeros(0))
    model = network()
    wrapped = DistributedDataParallel(model)
    accumulated = Implicit(BOUND).attach(wrapped).accumulate(2)
    half = len(y) // 2
    accumulated.backward(wrapped, x[:half], y[:half])
    found["accumulated loss"] = accumulated.backward(wrapped, x[half:], y[half:])
    found["accumulated"] = gradients(model)
    texts, sizes, _ = gather_rows({"t": y.numpy().astype(str), "n": y.float()})
    found["texts"] = (texts["t"].tolist(), texts["n"], sizes)
    return found
