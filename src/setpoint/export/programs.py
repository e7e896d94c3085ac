"""For other runtimes: an exported program, and ONNX."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from setpoint._extras import optional
from setpoint._files import write_file
from setpoint.export.decision import Decision

NAMES = ("decisions", "scores")
_INPUTS = ("x", "groups", "ids")
_ONE_FILE = 2**30  # bytes of weights; ONNX takes less than twice that in one file


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
