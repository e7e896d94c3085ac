"""A network in two parts: the body that makes features, the head that makes scores of them."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import UninitializedParameter


class Split(nn.Module):
    """A model that gives features while it trains and scores when it is used.

    The model itself is not changed: its weights are shared, and ``model(x)`` works as before.

    Args:
        model: Any module that calls its head once.
        head: The head or its name, such as ``"fc"``; without it, of an ``nn.Sequential``, the last
            layer that has weights (and what follows it).

    Examples:
        >>> import torch
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> split, x = Split(model), torch.randn(5, 4)
        >>> split(x).shape, bool((split.eval()(x) == model(x)).all())
        (torch.Size([5, 8]), True)
    """

    auxiliary: nn.Module | None

    def __init__(self, model: nn.Module, head: nn.Module | str | None = None) -> None:
        super().__init__()
        self.model = model
        self._parts = _body_and_head(model, head)  # in a tuple: they are parts of the model already
        self.register_module("auxiliary", None)  # the body's own head, if it is trained with one

    @property
    def head(self) -> nn.Module:
        """What turns features into scores."""
        return self._parts[1]

    def features(self, *inputs: Any, **options: Any) -> Tensor:
        """What the head is given when the model is called."""
        body, head = self._parts
        if body is not None:
            return cast(Tensor, body(*inputs, **options))
        seen: list[Tensor] = []
        handle = head.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        try:
            self.model(*inputs, **options)
        finally:
            handle.remove()
        if len(seen) != 1:
            times = "never" if not seen else f"{len(seen)} times"
            raise ValueError(
                f"The head {_short_name(head)} was called {times} in one pass of the model; the "
                "last layer must be called once. Name another one with head=."
            )
        return seen[0]

    def forward(self, *inputs: Any, **options: Any) -> Tensor:
        """Features in training mode, scores in evaluation mode."""
        features = self.features(*inputs, **options)
        return features if self.training else cast(Tensor, self.head(features))


def _body_and_head(
    model: nn.Module, head: nn.Module | str | None
) -> tuple[nn.Module | None, nn.Module]:
    """The body, if it can be cut off, and the head."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"Split takes a torch module; got {type(model).__name__}.")
    if head is None:
        return _last_layer(model)
    if isinstance(head, str):
        names = [name for name, _ in model.named_modules() if name]
        if head not in names:
            listed = ", ".join(names) or "none"
            raise ValueError(f"The model has no part called {head!r}; it has: {listed}.")
        head = model.get_submodule(head)
    if not any(part is head for part in model.modules()):
        raise ValueError(
            f"The head {_short_name(head)} is not part of the model {type(model).__name__}: "
            "training it would not change the model. Pass a part of it, such as model.fc, or "
            "its name."
        )
    if head is model:
        raise ValueError("The head is the whole model: nothing is left to be the body.")
    return None, head


def _last_layer(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    if not isinstance(model, nn.Sequential):
        raise ValueError(
            f"Only an nn.Sequential says what its last layer is; of a {type(model).__name__} name "
            'it, as in head="fc".'
        )
    own = [i for i, part in enumerate(model) if any(True for _ in part.parameters())]
    if len(own) < 2:
        raise ValueError(f"The model needs two layers with weights, a body and a head: {model}.")
    last = own[-1]
    return model[:last], model[last] if last == len(model) - 1 else model[last:]


def check_head(head: object) -> nn.Module:
    """``head``, if it has weights and gives the same scores each time it is called."""
    if not isinstance(head, nn.Module):
        raise TypeError(f"head must be a torch module, such as model.fc; got {head!r}.")
    for part in head.modules():
        random = isinstance(part, (_DropoutNd, nn.RReLU))
        if random or isinstance(part, _BatchNorm) or getattr(part, "track_running_stats", False):
            raise ValueError(f"The head contains {type(part).__name__}: {_UNSTEADY}")
    if not any(True for _ in head.parameters()):
        raise ValueError(f"The head {_short_name(head)} has no weights to train.")
    if any(isinstance(p, UninitializedParameter) for p in head.parameters()):
        raise ValueError("The head has no shape yet; run the model on one batch first.")
    return head


def check_steady(head: nn.Module, features: Tensor) -> None:
    """Raise if two calls of the head give different scores."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            first, second = head(features), head(features)
        except RuntimeError as error:
            shape = tuple(features.shape)
            raise ValueError(f"The head cannot take features of shape {shape}: {error}") from error
    torch.clear_autocast_cache()  # before torch 2.13 it keeps these weights, without a gradient
    if not torch.allclose(first, second, equal_nan=True):
        raise ValueError(f"The head gives other scores each time it is called: {_UNSTEADY}")


def check_features(features: object, head: nn.Module) -> None:
    """Raise unless the features have the width that the head takes."""
    if not isinstance(features, Tensor):
        raise TypeError(f"Features must be a torch tensor; got {type(features).__name__}.")
    width = next((p.in_features for p in head.modules() if isinstance(p, nn.Linear)), None)
    if width is not None and (features.ndim < 2 or features.shape[-1] != width):
        raise ValueError(
            f"The head takes features of width {width}, [n, {width}]; got the shape "
            f"{tuple(features.shape)}. Pass what goes into the head, not the model's scores: "
            "Split(model, head)(x) gives it."
        )


_UNSTEADY = (
    "the body's loss and the head's would see different scores. Leave it in the body and pass the "
    "layer after it."
)


def _short_name(head: nn.Module) -> str:
    return type(head).__name__ if len(str(head)) > 60 else str(head)
