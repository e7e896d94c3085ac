"""What must be the same for a checkpoint to be continued: settings, data, start.

Not the number of processes: the rows of all of them count as one table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.train.fingerprint import fingerprint
from setpoint.train.team import added_up, first_row


def recipe(
    criterion: object,
    settings: Mapping[str, object],
    rows: Mapping[str, tuple[Any, ...] | None],
    *,
    start: Mapping[str, Any],
) -> dict[str, Any]:
    """Settings as they are written, and digests of the data and of the initial model.

    Args:
        criterion: Its ``repr``, or the name of a function.
        settings: Everything else that decides the numbers.
        rows: Columns with a row for each of this rank's examples, by what they are for.
        start: The ``state_dict`` that training begins with.
    """
    name = repr(criterion) if isinstance(criterion, nn.Module) else _name_of(criterion)
    written = {key: str(value) for key, value in settings.items()}
    digests = {key: _digest(part) for key, part in rows.items() if part is not None}
    return {"criterion": name, **written, **digests, "start": _digest_of_state(start)}


def _digest(columns: tuple[Any, ...]) -> str:
    """The number of rows of all ranks, and their fingerprint."""
    count = len(columns[0])
    total = added_up(fingerprint(columns, first_row(count)))
    return f"{added_up(count):,} rows {total:016x}"


def _digest_of_state(state: Mapping[str, Any]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for name, value in state.items():
        if isinstance(value, Tensor):  # what is none is refused when the checkpoint is written
            tensor = value.detach().cpu().contiguous()
            found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            found.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _name_of(criterion: object) -> str:
    return getattr(criterion, "__qualname__", type(criterion).__qualname__)
