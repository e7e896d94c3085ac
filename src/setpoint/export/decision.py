"""A model and its certified threshold in one module: features in, decisions out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from setpoint.batch import check_scores
from setpoint.certificates import Certificate, ThreeWayCertificate
from setpoint.certificates.tie_breaking import lots
from setpoint.rates import Value

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


class Decision(nn.Module):
    """Decisions and scores of a model at its certified threshold.

    Scores are compared in the precision they were certified in, strictly: ``score > threshold``.
    The threshold is a buffer, so it moves, is saved and is exported with the weights.

    A score that is NaN or infinite raises. An exported graph (``torch.export``, ONNX, a traced
    module) cannot raise: there NaN is never accepted, whatever the threshold, infinity is above and
    minus infinity below every threshold. It returns the scores, so the program around it can look.

    Args:
        model: Gives one score an example, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` outputs.
        certificate: A certified one. With one threshold for each group, ``forward`` takes the
            number of each example's group in ``groups``; with ties broken by lot, the number of
            each example's id in ``ids`` (:func:`setpoint.certificates.row_numbers`). Of several
            outputs, one without a threshold is never accepted. Of three-way decisions 0 is reject,
            1 review and 2 accept.

    Examples:
        >>> from setpoint import certify
        >>> scores, labels = torch.linspace(0, 1, 1000), torch.arange(1000) >= 500
        >>> decision = Decision(nn.Identity(), certify(scores, labels, "fpr <= 0.05"))
        >>> decision(torch.tensor([0.2, 0.9]))[0]
        tensor([False,  True])
    """

    thresholds: Tensor
    lots: Tensor

    def __init__(self, model: nn.Module, certificate: Certificate | ThreeWayCertificate) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise TypeError(f"Decision takes an nn.Module and its certificate; got {model!r:.60}.")
        if not isinstance(certificate, (Certificate, ThreeWayCertificate)):
            raise TypeError(
                "Decision takes the certificate that certify() returned, for the threshold and the "
                f"precision it is compared in; got {certificate!r:.60}."
            )
        self.model, self.certificate = model, certificate
        self.outputs: tuple[str, ...] = ()
        self.groups: tuple[Value, ...] = ()
        found: tuple[float, ...]
        given: tuple[float, ...] = ()
        if isinstance(certificate, ThreeWayCertificate):
            found = certificate.thresholds
        elif certificate.column is None:
            found, given = (certificate.threshold,), certificate.lots
        elif certificate.outputs:
            self.outputs, named = certificate.outputs, certificate.thresholds
            found = tuple(named.get(name, torch.inf) for name in self.outputs)
        else:
            self.groups, found = tuple(certificate.thresholds), (*certificate.thresholds.values(),)
            given = certificate.lots
        exact = torch.tensor(found, dtype=torch.float64)
        self.register_buffer("thresholds", exact.to(DTYPES[certificate.dtype]))
        self.register_buffer("lots", torch.tensor(given, dtype=torch.float64), persistent=False)

    def forward(
        self, x: Any, groups: Tensor | None = None, ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Decisions and scores, ``[n]`` each, or ``[n, c]`` for several outputs.

        Args:
            x: What the model takes.
            groups: With one threshold for each group, the place of each example's group in
                ``decision.groups``, as whole numbers.
            ids: With ties broken by lot, the number of each example's id.

        Raises:
            ValueError: A score is NaN or infinite, the model gives another number of scores, or
                groups are missing, of another shape or not certified.
        """
        scores: Tensor = self.model(x)
        wanted = len(self.outputs) or 1
        if (scores.shape[1] if scores.ndim == 2 else 1) != wanted:
            raise ValueError(
                f"The model gives {scores.shape[1] if scores.ndim == 2 else 1} scores an example; "
                f"Decision takes {wanted}, one for each threshold."
            )
        if not torch.compiler.is_compiling() and not torch._C._is_tracing():
            check_scores(scores.detach())
        if scores.ndim == 2 and not self.outputs:
            scores = scores[:, 0]
        seen = scores.to(self.thresholds.dtype)
        if isinstance(self.certificate, ThreeWayCertificate):
            return (seen > self.thresholds[0]).long() + (seen > self.thresholds[1]).long(), scores
        thresholds, limits = self.thresholds, self.lots
        if self.groups:
            if groups is None:
                raise ValueError(
                    f"There is one threshold for each {self.certificate.column}: pass groups=, the "
                    f"places of {', '.join(map(repr, self.groups[:5]))} in decision.groups."
                )
            thresholds, limits = self._of_each(groups, scores)
        elif groups is not None:
            raise ValueError("There is one threshold for everyone; leave groups= out.")
        decided = seen > thresholds
        if self.needs_ids:
            if ids is None:
                raise ValueError("Ties are broken by a lot drawn from the row's id: pass ids=.")
            decided = decided | ((seen == thresholds) & (self._drawn(ids) > limits))
        return decided, scores

    @property
    def needs_ids(self) -> bool:
        """Whether ties are broken by lot."""
        return len(self.lots) > 0

    def _drawn(self, ids: Tensor) -> Tensor:
        assert isinstance(self.certificate, Certificate)
        drawn: Tensor = lots(ids.long(), self.certificate.lot_seed)
        return drawn

    def _of_each(self, groups: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The threshold of every example, and its lot if there are lots.

        In an exported graph, where nothing can be refused, a number that is no group's is never
        accepted.
        """
        last = len(self.groups) - 1
        if not torch.compiler.is_compiling():
            self._check(groups, scores)
        known = (groups >= 0) & (groups <= last)
        infinite = self.thresholds.new_tensor(torch.inf)
        places = groups.clamp(0, last)
        limits = self.lots[places] if self.needs_ids else self.lots
        return torch.where(known, self.thresholds[places], infinite), limits

    def _check(self, groups: Tensor, scores: Tensor) -> None:
        whole = isinstance(groups, Tensor) and not (
            groups.is_floating_point() or groups.is_complex() or groups.dtype == torch.bool
        )
        if not whole or groups.shape != scores.shape:
            got = (groups.dtype, tuple(groups.shape)) if isinstance(groups, Tensor) else groups
            raise ValueError(
                f"groups must be a tensor of {len(scores)} whole numbers, the places of each "
                f"example's group in decision.groups; got {got!r:.60}."
            )
        strangers = groups[(groups < 0) | (groups >= len(self.groups))]
        if len(strangers):
            raise ValueError(
                f"Group number {int(strangers[0])} was not certified: there are "
                f"{', '.join(map(repr, self.groups[:5]))}, numbered from 0. Decide such rows by "
                "hand, or certify with rows of their group."
            )

    def _apply(self, fn: Any, recurse: bool = True) -> Decision:
        """Move to another device, but never to another precision: the promise is about this one."""
        exact = self.thresholds, self.lots
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.thresholds.device
        self.thresholds, self.lots = (each.to(device) for each in exact)
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Weights may be loaded; another threshold than the certificate's is refused."""
        found = state_dict.get(f"{prefix}thresholds")
        if found is not None and not torch.equal(found.cpu(), self.thresholds.cpu()):
            raise ValueError(
                f"The stored threshold {found.tolist()} is not the certificate's "
                f"{self.thresholds.tolist()}: take the certificate that belongs to these weights."
            )
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """The promise, in the printed module."""
        several = len(self.thresholds)
        kind = f"{several} thresholds" if several > 1 else f"{float(self.thresholds):g}"
        return f"{self.certificate.goal}, threshold={kind}"
