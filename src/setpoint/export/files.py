"""A decision as a file: weights and certificate as safetensors, and programs for other runtimes.

Nothing in a safetensors file can run. An exported program and ONNX decide without this library.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from setpoint._extras import optional
from setpoint._files import write_file
from setpoint.certificates import Certificate, ThreeWayCertificate
from setpoint.export.decision import Decision

_CERTIFICATE = "setpoint_certificate"
NAMES = ("decisions", "scores")
_INPUTS = ("x", "groups", "ids")
_ONE_FILE = 2**30  # bytes of weights; ONNX takes less than twice that in one file


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


def to_program(decision: Decision, example: Tensor) -> torch.export.ExportedProgram:
    """The decision as a program for any batch size.

    Args:
        decision: With one threshold, or (with groups) one for each.
        example: A batch of at least two examples, as the model takes them.

    Examples:
        >>> from setpoint import certify
        >>> scores, labels = torch.linspace(0, 1, 1000), torch.arange(1000) >= 500
        >>> decision = Decision(torch.nn.Flatten(0), certify(scores, labels, "fpr <= 0.05"))
        >>> program = to_program(decision, torch.zeros(4, 1))
        >>> program.module()(torch.tensor([[0.2], [0.9], [0.1]]))[0]
        tensor([False,  True, False])
    """
    inputs, shapes = _inputs(decision, example)
    with _evaluating(decision):
        return torch.export.export(decision, inputs, dynamic_shapes=shapes)


def to_onnx(decision: Decision, example: Tensor, file: str | Path) -> None:
    """Write the decision as ONNX, for any batch size; outputs are ``decisions`` and ``scores``.

    Args:
        decision: With one threshold, or (with groups) one for each.
        example: A batch of at least two examples, as the model takes them.
        file: Where to write. A file that is there is replaced in one step; from a gigabyte of
            weights on, which ONNX keeps in a second file, in two.

    Examples:
        >>> import tempfile
        >>> from setpoint import certify
        >>> scores, labels = torch.linspace(0, 1, 1000), torch.arange(1000) >= 500
        >>> decision = Decision(torch.nn.Flatten(0), certify(scores, labels, "fpr <= 0.05"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     to_onnx(decision, torch.zeros(4, 1), f"{folder}/decision.onnx")
        ...     [file.name for file in Path(folder).iterdir()]
        ['decision.onnx']
    """
    for library in ("onnx", "onnxscript"):
        optional(library)
    inputs, shapes = _inputs(decision, example)
    with warnings.catch_warnings(), _evaluating(decision):
        warnings.simplefilter("ignore")  # torch's exporter, about its own insides
        exported = torch.onnx.export(
            decision,
            inputs,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=[n for n, given in zip(_INPUTS, inputs, strict=False) if given is not None],
            output_names=list(NAMES),
            verbose=False,
        )
    assert exported is not None
    if sum(tensor.nbytes for tensor in decision.state_dict().values()) < _ONE_FILE:
        write_file(Path(file), exported.model_proto.SerializeToString())
    else:
        exported.save(str(file))


@contextmanager
def _evaluating(decision: Decision) -> Iterator[None]:
    """In evaluation mode, and then every part as it was."""
    were = [(part, part.training) for part in decision.modules()]
    decision.eval()
    try:
        yield
    finally:
        for part, training in were:
            part.training = training


def _inputs(decision: Decision, example: Tensor) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What ``forward`` takes (None where nothing is needed), and where each has the batch."""
    if not isinstance(example, Tensor) or example.ndim == 0 or len(example) < 2:
        raise ValueError(
            "example must be a tensor with at least two examples: from one alone nobody can tell "
            "which dimension is the batch."
        )
    batch = torch.export.Dim("batch", min=1)
    needed = (decision.groups, decision.needs_ids)
    given: list[Any] = [example]  # two tensors: one given twice would be exported as one input
    given += [
        example.new_zeros(len(example), dtype=torch.long) if each else None for each in needed
    ]
    while given[-1] is None:
        given.pop()
    return tuple(given), tuple(None if each is None else {0: batch} for each in given)
