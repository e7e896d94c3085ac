"""A main loss that fades: it shapes features first, then leaves the field to the implicit loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint._checks import share as share_between
from setpoint._checks import whole
from setpoint.problems.scan import quiet
from setpoint.rates import Array
from setpoint.solvers.criterion import BatchCriterion
from setpoint.solvers.mix import Loss, attach, main_loss, mix, score_gradient
from setpoint.thresholds import State, array_of, in_numpy, library_of, tensor_of

SHARE_WITHOUT_STEPS = 0.3


class Fading(BatchCriterion, State):
    """What criteria with a main loss share: which one it is, its share now, and the mix."""

    step_count: Tensor
    _last: Any
    """The last batch, as a dataclass with ``share`` and ``main``."""

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

    def _loss(
        self,
        scores: Tensor,
        labels: Tensor,
        weights: Tensor | None,
        value: Tensor,
        gradient: Tensor,
        sound: Tensor,
    ) -> Tensor:
        """The value ``[c]`` where it is sound, its gradient ``[c, n]`` mixed with the main one."""
        xp, learns = library_of(scores), torch.is_grad_enabled() and scores.requires_grad
        values, slopes, right = (array_of(x) for x in (value, gradient, sound))
        with quiet(xp):
            found = self._value(scores, xp.where(right, values, 0.0).mean())
            if not learns:
                return found
            if self.share == 0:
                slopes = slopes / len(slopes)
            else:
                main = score_gradient(main_loss(self.main), scores, labels, weights)
                slopes = mix(array_of(main).reshape(len(scores), -1).T, slopes, self._last.share)
                right = right & xp.isfinite(slopes.sum(-1))
                self._last = replace(self._last, main=main)
            slopes = xp.where(right[:, None], slopes, 0.0).T.reshape(scores.shape)
        return attach(scores, found, tensor_of(slopes))

    def _value(self, scores: Tensor, mean: Array) -> Tensor:
        """The mean over outputs, in single precision at least."""
        dtype = torch.promote_types(scores.dtype, torch.float32)
        if not isinstance(mean, Tensor):
            return torch.tensor(float(mean), dtype=dtype)
        value = mean.to(dtype)
        if torch.compiler.is_compiling():  # where nothing can raise, NaN stays NaN
            value = value + (0 * scores.detach()).sum()
        return value


def _share(share: object) -> float | Literal["fade"]:
    if isinstance(share, str):
        if share != "fade":
            raise ValueError(f"share must be 'fade' or a number from 0 to 1; got {share!r}.")
        return "fade"
    return share_between(share, "share")
