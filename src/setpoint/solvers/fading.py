"""A main loss that fades: it shapes features first, then leaves the field to the implicit loss."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from setpoint._checks import share as share_between
from setpoint._checks import whole
from setpoint.axes.arrays import quiet
from setpoint.rates import Array
from setpoint.solvers.base import BatchCriterion
from setpoint.solvers.mix import Loss, attach, exact_type, main_loss, mix, score_gradient
from setpoint.thresholds import State, array_of, in_numpy, library_of, tensor_of

SHARE_WITHOUT_STEPS = 0.3


class Fading(BatchCriterion, State):
    """What criteria with a main loss share: which one it is, its share now, and the mix."""

    step_count: Tensor

    def _fade(
        self, main: str | Loss, share: float | Literal["fade"], steps: int | None, end: float
    ) -> None:
        """Take the settings; refuse what is none."""
        main_loss(main)
        self.main = main
        self.share = _share(share)
        self.steps = None if steps is None else whole(steps, "steps", least=1)
        self.end = share_between(end, "end")
        self.register_buffer("step_count", torch.zeros((), dtype=torch.long))

    def current_share(self, end: float | None = None) -> Tensor | float:
        """The main loss's share at this step; ``end`` may take the place of the setting."""
        end = self.end if end is None else end
        if self.share != "fade":
            return self.share
        if self.steps is None:
            return SHARE_WITHOUT_STEPS
        count = self.step_count.item() if in_numpy(self.step_count) else self.step_count.double()
        share = 1 - (1 - end) * count / max(1, self.steps - 1)
        return max(share, end) if isinstance(share, float) else share.clamp(min=end)

    def _main(self, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor | None:
        """The gradient of the main loss on the scores, if it has a share in one."""
        learns = torch.is_grad_enabled() and scores.requires_grad
        if not learns or self.share == 0:
            return None
        return score_gradient(main_loss(self.main), scores, labels, weights)

    def _loss(
        self,
        scores: Tensor,
        value: Array,
        gradient: Array,
        sound: Array,
        main: Tensor | None,
        share: Tensor | float,
    ) -> Tensor:
        """The value ``[c]`` where it is sound, its gradient ``[c, n]`` mixed with the main one."""
        xp = library_of(scores)
        values, slopes, right = array_of(value), array_of(gradient), array_of(sound)
        with quiet(xp):
            found = _mean(scores, xp.where(right, values, 0.0))
            if not (torch.is_grad_enabled() and scores.requires_grad):
                return torch.as_tensor(found, dtype=exact_type(scores))
            if main is None:
                slopes = slopes / len(slopes)
            else:
                slopes = mix(array_of(main).reshape(-1, len(slopes)).T, slopes, share)
            right = right & xp.isfinite(slopes.sum(-1))  # no sum with an infinity or NaN is
            slopes = xp.where(right[:, None], slopes, 0.0).T.reshape(scores.shape)
        return attach(scores, found, tensor_of(slopes))


def _mean(scores: Tensor, values: Array) -> Tensor | float:
    """The mean over outputs, in single precision at least."""
    if not isinstance(values, Tensor):
        return float(values.sum()) / len(values)
    value = values.mean().to(exact_type(scores))
    if torch.compiler.is_compiling():  # where nothing can raise, NaN stays NaN
        value = value + (0 * scores.detach()).sum()
    return value


def _share(share: object) -> float | Literal["fade"]:
    if isinstance(share, str):
        if share != "fade":
            raise ValueError(f"share must be 'fade' or a number from 0 to 1; got {share!r}.")
        return "fade"
    return share_between(share, "share")
