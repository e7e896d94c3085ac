"""Many small models on the same batch at once, each column one of them.

Elementwise optimizers, and criteria that see each column alone, train every column exactly as if
it were a model of its own (a test compares them): hundreds of runs then fit into an hour.
"""

from typing import Any

import torch
from torch import Tensor, nn

from setpoint.train.averaging import decay

MOMENTUM = 0.9
AT_ONCE = 2048  # rows scored at a time: the hidden layers of a hundred networks are large


class Stack(nn.Module):
    """``columns`` linear models or networks of one hidden layer; scores are ``[n, columns]``.

    All columns start from the same weights: what differs is what they are trained for.
    """

    def __init__(self, inputs: int, hidden: int, columns: int, seed: int, zero_head: bool) -> None:
        super().__init__()
        self.hidden, self.columns = hidden, columns
        torch.manual_seed(seed)
        layers = [nn.Linear(inputs, hidden)] if hidden else []
        layers.append(nn.Linear(hidden or inputs, 1))
        if zero_head:
            nn.init.zeros_(layers[-1].weight)
            nn.init.zeros_(layers[-1].bias)
        if hidden:
            self.weight = nn.Parameter(layers[0].weight.detach().T.repeat(1, columns))
            self.bias = nn.Parameter(layers[0].bias.detach().repeat(columns))
        self.head = nn.Parameter(layers[-1].weight.detach().T.repeat(1, columns))
        self.shift = nn.Parameter(layers[-1].bias.detach().repeat(columns))

    def forward(self, x: Tensor) -> Tensor:
        """The scores of all columns."""
        if not self.hidden:
            return torch.addmm(self.shift, x, self.head)
        hidden = torch.addmm(self.bias, x, self.weight).relu()
        hidden = hidden.view(len(x), self.columns, self.hidden)
        return torch.einsum("nch,hc->nc", hidden, self.head) + self.shift


class Stepper:
    """An optimizer whose learning rate differs by column, and the average of the weights."""

    def __init__(self, stack: Stack, rates: Tensor, kind: str) -> None:
        """``rates`` [columns]: one for each; ``kind``: adam, sgd (with momentum) or adagrad."""
        self.stack, self.updates = stack, 0
        unit = {
            "adam": lambda p: torch.optim.Adam(p, lr=1.0),
            "sgd": lambda p: torch.optim.SGD(p, lr=1.0, momentum=MOMENTUM),
            "adagrad": lambda p: torch.optim.Adagrad(p, lr=1.0),
        }
        self.optimizer = unit[kind](stack.parameters())
        self.rates = [_by_column(p, rates, stack) for p in stack.parameters()]
        self.average = [p.detach().clone() for p in stack.parameters()]

    @torch.no_grad()
    def step(self) -> None:
        """A step of length one, then shortened column by column."""
        before = [p.detach().clone() for p in self.stack.parameters()]
        self.optimizer.step()
        self.optimizer.zero_grad()
        for p, old, rate in zip(self.stack.parameters(), before, self.rates, strict=True):
            p.copy_(old + rate * (p - old))
        now = [p.detach() for p in self.stack.parameters()]
        torch._foreach_lerp_(self.average, now, 1 - decay(self.updates))
        self.updates += 1

    @torch.no_grad()
    def scores(self, x: Tensor, averaged: bool) -> Any:
        """Scores by the present or the averaged weights, in numpy."""
        names = [name for name, _ in self.stack.named_parameters()]
        weights = dict(zip(names, self.average, strict=True)) if averaged else {}
        parts = (torch.func.functional_call(self.stack, weights, (p,)) for p in x.split(AT_ONCE))
        return torch.cat(list(parts)).numpy()


def _by_column(p: Tensor, rates: Tensor, stack: Stack) -> Tensor:
    """The rate of every weight of ``p``: its last dimension runs over columns, hidden units in."""
    return rates.repeat_interleave(p.shape[-1] // stack.columns)
