"""A model and its certified threshold in one module: features in, decisions out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.certificates import Certificate
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

    Args:
        model: Gives one score an example, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` outputs.
        certificate: A certified one; with one threshold for each group, ``forward`` takes the
            number of each example's group in ``groups``. Of several binary outputs a dict by
            name, in the order of the columns: :func:`setpoint.certificates.certify_outputs`.

    Examples:
        >>> from setpoint import certify
        >>> scores, labels = torch.linspace(0, 1, 1000), torch.arange(1000) >= 500
        >>> decision = Decision(nn.Identity(), certify(scores, labels, "fpr <= 0.05"))
        >>> decision(torch.tensor([0.2, 0.9]))[0]
        tensor([False,  True])
    """

    thresholds: Tensor

    def __init__(
        self, model: nn.Module, certificate: Certificate | Mapping[str, Certificate]
    ) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise TypeError(f"Decision takes an nn.Module and its certificate; got {model!r:.60}.")
        several = isinstance(certificate, Mapping)
        given = dict(certificate) if isinstance(certificate, Mapping) else {"": certificate}
        self.certificates = _check_certificates(given)
        self.model = model
        self.outputs = tuple(given) if several else ()
        self.groups: tuple[Value, ...] = ()
        first = next(iter(self.certificates.values()))
        found = [each.threshold for each in given.values() if each.column is None]
        if first.column is not None:
            named = first.thresholds
            self.groups, found = tuple(named), list(named.values())
        exact = torch.tensor(found, dtype=torch.float64)
        self.register_buffer("thresholds", exact.to(DTYPES[first.dtype]))

    @property
    def certificate(self) -> Certificate:
        """The certificate, of several outputs that of the first."""
        return next(iter(self.certificates.values()))

    def forward(self, x: Any, groups: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Decisions (booleans) and scores, ``[n]`` each, or ``[n, c]`` for several outputs.

        Args:
            x: What the model takes.
            groups: With one threshold for each group, the place of each example's group in
                ``decision.groups``, as whole numbers.
        """
        scores: Tensor = self.model(x)
        wanted = len(self.outputs) or 1
        if (scores.shape[1] if scores.ndim == 2 else 1) != wanted:
            raise ValueError(
                f"The model gives {scores.shape[1] if scores.ndim == 2 else 1} scores an example; "
                f"Decision takes {wanted}, one for each certificate."
            )
        if scores.ndim == 2 and not self.outputs:
            scores = scores[:, 0]
        thresholds = self.thresholds
        if self.groups:
            if groups is None:
                raise ValueError(
                    f"There is one threshold for each {self.certificate.column}: pass groups=, the "
                    f"places of {', '.join(map(repr, self.groups[:5]))} in decision.groups."
                )
            thresholds = self._of_each(groups, scores)
        elif groups is not None:
            raise ValueError("There is one threshold for everyone; leave groups= out.")
        return scores.to(thresholds.dtype) > thresholds, scores

    def _of_each(self, groups: Tensor, scores: Tensor) -> Tensor:
        """The threshold of every example.

        In an exported graph, where nothing can be refused, a number that is no group's is never
        accepted.
        """
        last = len(self.groups) - 1
        if not torch.compiler.is_compiling():
            self._check(groups, scores)
        known = (groups >= 0) & (groups <= last)
        infinite = self.thresholds.new_tensor(torch.inf)
        return torch.where(known, self.thresholds[groups.clamp(0, last)], infinite)

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
        dtype = self.thresholds.dtype
        exact = self.thresholds
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.thresholds.dtype != dtype:
            self.thresholds = exact.to(self.thresholds.device)
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


def _check_certificates(given: dict[str, Certificate]) -> dict[str, Certificate]:
    """The same, if all are certificates that one model's scores can be compared with."""
    for certificate in given.values():
        if not isinstance(certificate, Certificate):
            raise TypeError(
                "Decision takes the certificate that certify() returned, for the threshold and the "
                f"precision it is compared in; got {certificate!r:.60}."
            )
    if not given:
        raise ValueError("There is no certificate: pass one, or one for each output.")
    grouped = any(each.column is not None for each in given.values())
    if len(given) > 1 and (grouped or len({each.dtype for each in given.values()}) > 1):
        raise ValueError(
            "Certificates of several outputs must be of scores in one precision, without groups."
        )
    return given


def certificates_to_json(certificates: Mapping[str, Certificate]) -> str:
    """The certificates of a decision as text; one without a name is a certificate's own text."""
    if tuple(certificates) == ("",):
        return certificates[""].to_json()
    return json.dumps({name: each.to_json() for name, each in certificates.items()})


def certificates_from_json(text: str) -> Certificate | dict[str, Certificate]:
    """What :func:`certificates_to_json` wrote; a changed certificate is a ValueError."""
    found = json.loads(text)
    if isinstance(found, dict) and found and all(isinstance(v, str) for v in found.values()):
        return {name: Certificate.from_json(each) for name, each in found.items()}
    return Certificate.from_json(text)
