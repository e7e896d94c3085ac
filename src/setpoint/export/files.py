"""Weights and certificate in one safetensors file: nothing in it can run."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from setpoint._files import write_file
from setpoint.certificates import Certificate, ThreeWayCertificate
from setpoint.export.decision import Decision

_CERTIFICATE = "setpoint_certificate"


def save_decision(decision: Decision, file: str | Path) -> None:
    """Write weights, threshold and certificate; the certificate is text in the metadata.

    A file that is there is replaced in one step.

    Examples:
        >>> import tempfile
        >>> from setpoint import certify
        >>> scores, labels = torch.linspace(0, 1, 1000), torch.arange(1000) >= 500
        >>> decision = Decision(nn.Identity(), certify(scores, labels, "fpr <= 0.05"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_decision(decision, f"{folder}/decision.safetensors")
        ...     [file.name for file in Path(folder).iterdir()]
        ['decision.safetensors']
    """
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in decision.state_dict().items()
    }
    text = decision.certificate.to_json()
    write_file(Path(file), save(tensors, metadata={_CERTIFICATE: text}))


def load_decision(file: str | Path, model: nn.Module) -> Decision:
    """Read what :func:`save_decision` wrote into a model of the same shape.

    Args:
        file: The safetensors file.
        model: A model like the one that was saved; its weights are replaced.

    Raises:
        ValueError: The file is damaged, has no certificate, or does not fit the model.

    Examples:
        >>> import tempfile
        >>> from setpoint import certify
        >>> certificate = certify(torch.linspace(0, 1, 90), torch.arange(90) >= 60, "fpr <= 0.1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_decision(Decision(nn.Identity(), certificate), f"{folder}/it.safetensors")
        ...     load_decision(f"{folder}/it.safetensors", nn.Identity()).certificate.status
        'certified'
    """
    try:
        with safe_open(str(file), framework="pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{file} is no safetensors file, or it is damaged: {error}.") from None
    if _CERTIFICATE not in metadata:
        raise ValueError(f"{file} has no certificate in it; write it with save_decision.")
    text = metadata[_CERTIFICATE]
    kind = ThreeWayCertificate if ThreeWayCertificate.kind in text else Certificate
    decision = Decision(model, kind.from_json(text))
    known = tensors.get("thresholds")
    if known is None or not torch.equal(known, decision.thresholds.cpu()):
        raise ValueError(f"The threshold in {file} is not the one its certificate promises.")
    try:
        decision.load_state_dict(tensors)
    except RuntimeError as error:
        what = " ".join(str(error).split())
        raise ValueError(f"The weights in {file} do not fit this model: {what:.200}") from None
    return decision.eval()
