"""One cell of the simulation: draw, ask every method, compare with the truth."""

from __future__ import annotations

import math
import time
import zlib
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks.simulation.goals import goals
from benchmarks.simulation.methods import DELTA, mapie, models, naive, ours
from benchmarks.simulation.truth import (
    GROUPS,
    SHIFT,
    Cell,
    Floats,
    broken,
    draw,
    kept,
    latent,
    missed,
)
from setpoint.rates import Bound

MAPIE_DRAWS = {"MAPIE": (100, 500), "MAPIE, 1,000": (1000, 100)}
MAPIE_DRAWS_OF_TIES = {"MAPIE": (100, 500)}
"""Grid and number of draws: MAPIE takes a thousand times as long."""


def run(cell: Cell) -> dict[str, Any]:
    """What the certificate and the naive threshold do in a cell."""
    bounds, began = goals(cell), time.perf_counter()
    random = _random(cell)
    thresholds: dict[str, list[Any]] = {"ours": [], "naive": []}
    intervals: list[list[float]] = []
    for _ in range(cell.draws):
        if cell.name == "fpr, 20 models":
            found = models(cell, random, bounds)
            for method, t in zip(("ours", "naive", "uncorrected"), found, strict=True):
                thresholds.setdefault(method, []).append(t)
            continue
        data = draw(cell, random)
        threshold, interval = ours(cell, data, bounds)
        thresholds["ours"].append(threshold)
        intervals.append(interval)
        thresholds["naive"].append(naive(cell, data, bounds))
    told = {name: summary(np.array(ts), bounds, cell) for name, ts in thresholds.items()}
    if intervals and cell.name != "fpr by group":
        told["ours"]["missed"] = missed(np.array(thresholds["ours"]), np.array(intervals), cell)
    seconds = time.perf_counter() - began
    return {**asdict(cell), "bounds": list(map(str, bounds)), "seconds": seconds, "found": told}


def beside(cell: Cell) -> dict[str, dict[str, float]]:
    """What MAPIE does with the first draws of the same cell."""
    found = {}
    kinds = MAPIE_DRAWS if cell.kind == "continuous" else MAPIE_DRAWS_OF_TIES
    for name, (grid, draws) in kinds.items():
        random = _random(cell)
        thresholds = [mapie(cell, draw(cell, random), grid) for _ in range(draws)]
        found[name] = summary(np.array(thresholds), goals(cell), cell)
    return found


def _random(cell: Cell) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(repr(cell).encode()), 1])


def summary(thresholds: Floats, bounds: tuple[Bound, ...], cell: Cell) -> dict[str, float]:
    """How often a threshold is promised and the promise broken, and what it keeps on average."""
    columns = thresholds.reshape(len(thresholds), -1).T
    bad = np.any([broken(column, bounds, cell) for column in columns], axis=0)
    if len(columns) > 1:
        each = [kept(t, cell, group) for t, group in zip(columns, GROUPS, strict=True)]
        keeps = np.mean(each, axis=0)
    elif cell.name == "fpr, 20 models":  # positives of a checkpoint are nearer
        cut = latent(thresholds, cell.kind)
        keeps = np.where(np.isnan(thresholds), 0, ndtr(SHIFT / math.sqrt(2) - cut))
    else:
        keeps = kept(thresholds, cell)
    found = {
        "draws": len(thresholds),
        "promised": float(np.mean(~np.isnan(columns).any(0))),
        "broken": float(np.mean(bad)),
        "kept": float(np.mean(keeps)),
    }
    if cell.name == "fpr on average":
        rates = ndtr(-latent(thresholds, cell.kind))
        rates = rates[~np.isnan(thresholds)]
        if len(rates):
            found |= {"mean": float(rates.mean()), "se": float(rates.std() / math.sqrt(len(rates)))}
    return found


def fine(row: dict[str, Any]) -> bool:
    """Whether violations are within delta and three standard errors."""
    found = row["found"]["ours"]
    most = DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / found["draws"])
    if found.get("missed", 0.0) > most:
        return False
    if row["name"] == "fpr on average":  # nothing promised, nothing broken
        return bool(found.get("mean", 0.0) <= row["alpha"] + 3 * found.get("se", 0.0))
    return bool(found["broken"] <= most)


def line(row: dict[str, Any]) -> str:
    """A row for the terminal."""
    ours = row["found"]["ours"]
    text = f"{row['name']:18} {row['kind']:10} n={row['n']:<6} {row['alpha']:<5}"
    text += f" promised {ours['promised']:.3f} broken {ours['broken']:.4f} kept {ours['kept']:.3f}"
    text += f" missed {ours.get('missed', math.nan):.4f}"
    for name, found in row["found"].items():
        if name != "ours":
            text += f" | {name} {found['broken']:.3f} {found['kept']:.3f}"
    return text + f" | {row['seconds']:.0f} s{'' if fine(row) else '  TOO MANY'}"
