"""The examples of all ranks on every rank, in the order of the ranks, however many each has.

Two messages: how many rows everybody has, then the rows, padded to the longest. What cannot be sent
on one rank is an error on all of them: nobody is left waiting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
import torch
import torch.distributed as dist

from setpoint.distributed.packing import Column, Layout, layout_of, pack, spelled, unpack
from setpoint.distributed.ranks import rank_of
from setpoint.distributed.wire import Wire

SOUND, BROKEN = 1, 0


def everyone(
    columns: Mapping[str, Column], group: dist.ProcessGroup | None = None, mode: str = ""
) -> tuple[dict[str, Column], list[int], str]:
    """Each column with the rows of all ranks, how many rows every rank has, and their mode.

    Args:
        columns: Tensors or arrays with a row for each example, by name. Ranks without any rows
            need not know the types of the others.
        group: The ranks; by default all.
        mode: What must be the same on all ranks that have rows, beside the columns.

    Raises:
        ValueError: The columns of this rank or of another cannot be sent, or do not match.
    """
    wire, error = Wire(group), None
    try:
        layout, count = layout_of(columns, mode), _count(columns)
        rows, words = pack(list(columns.values()), layout)
    except (TypeError, ValueError) as caught:
        error, layout, count = caught, Layout((), (), (), (), mode), 0
        rows, words = torch.empty(0, 0, dtype=torch.uint8), b"[]"
    state = BROKEN if error else SOUND
    heads = wire.numbers([state, count, _digest(layout), len(words)])
    states, sizes, digests, lengths = map(list, zip(*heads, strict=True))
    _raise_broken(states, error, group)
    if len(set(digests)) > 1:
        layout = _agreed(wire, layout, sizes)
        if not count:
            rows, words = pack([np.empty(0)] * len(layout.names), layout)
        lengths = [length for (length,) in wire.numbers([len(words)])]
    found = unpack(wire.rows(rows, sizes), layout)
    texts = [i for i, kind in enumerate(layout.kinds) if kind == "text"]
    if texts:
        listed = [json.loads(piece) for piece in wire.texts(words, lengths)]
        for number, i in enumerate(texts):
            found[i] = spelled(np.asarray(found[i]), sizes, [each[number] for each in listed])
    return dict(zip(layout.names, found, strict=True)), sizes, layout.mode


def _count(columns: Mapping[str, Column]) -> int:
    """The number of rows, the same in every column."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Every column needs one row an example; got {listed}.")
    return next(iter(lengths.values()), 0)


def _digest(layout: Layout) -> int:
    text = layout.to_json().encode()
    return int.from_bytes(blake2b(text, digest_size=7).digest(), "big")


def _raise_broken(
    states: list[int], error: Exception | None, group: dist.ProcessGroup | None
) -> None:
    """One rank's bad input is everybody's error: the others would wait for ever."""
    if error is not None:
        raise error
    if BROKEN in states:
        raise ValueError(
            f"Rank {states.index(BROKEN)} got a batch that it cannot use (its own message says "
            f"why), so rank {rank_of(group)} stops as well."
        )


def _agreed(wire: Wire, mine: Layout, sizes: list[int]) -> Layout:
    """The layout of the ranks that have rows; an error that shows the two that differ."""
    text = mine.to_json().encode()
    lengths = [length for (length,) in wire.numbers([len(text)])]
    written = wire.texts(text, lengths)
    known = [rank for rank, size in enumerate(sizes) if size] or [0]
    for rank in known[1:]:
        if written[rank] != written[known[0]]:
            one, other = (Layout.of_json(written[i].decode()) for i in (known[0], rank))
            raise ValueError(
                "All ranks must call the criterion with the same kinds of columns and in the same "
                f"mode; rank {known[0]} has {one}, rank {rank} has {other}."
            )
    return Layout.of_json(written[known[0]].decode())
