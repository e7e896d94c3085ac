"""Do certificates keep their promise, and at what price? Simulation with known truth.

    python benchmarks/certificates.py            # every cell, about 25 minutes on one core
    python benchmarks/certificates.py --quick    # two minutes: fewer cells, 300 draws each
    python benchmarks/certificates.py --large    # 10,000,000 scores: time and memory
    python benchmarks/certificates.py --docs     # write the tables into docs/certificates.md

Scores are Gaussian (the positives 2.5 deviations higher), as they are or tied: rounded to halves,
to 21 whole numbers, to bfloat16. So the true rates at any threshold are known, and broken promises
can be counted. Beside each certificate stand the naive threshold (the best on the same data)
and, where it has the goal, MAPIE's risk control. Results are appended to a JSON file, cell by cell;
cells that are there already are not run again. MAPIE is needed only for its own column.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from setpoint import __version__
from setpoint.certify import certify
from setpoint.rates import (
    Bound,
    Counts,
    Expression,
    Where,
    balanced_error,
    coverage,
    error,
    f_score,
    fnr,
    fpr,
    npv,
    precision,
    recall,
    tnr,
    tpr,
)

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "certificates.json"
PAGE = HERE.parent / "docs" / "certificates.md"
Floats = NDArray[np.float64]
SHIFT = 2.5
GROUPS = {"a": SHIFT, "b": 2.0}
DELTA = 0.05
CHECKPOINTS = 20

# ---- scores: a latent Gaussian, seen through a step function ----

QUANTIZERS: dict[str, Callable[[Floats], Floats]] = {
    "continuous": lambda s: s,
    "tied": lambda s: np.round(2 * s) / 2,
    "discrete": lambda s: np.clip(np.floor(2.5 * s + 6), 0, 20),
    "bf16": lambda s: torch.from_numpy(s).bfloat16().double().numpy(),
}


def latent(thresholds: Floats, kind: str) -> Floats:
    """The latent value above which scores exceed each threshold."""
    low, high = np.full(thresholds.shape, -60.0), np.full(thresholds.shape, 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        over = QUANTIZERS[kind](middle) > thresholds
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.where(np.isinf(thresholds), thresholds, high)


@dataclass(frozen=True)
class Cell:
    """One setting of the simulation."""

    name: str
    alpha: float
    kind: str
    n: int
    draws: int
    prevalence: float = 0.2


# ---- goals: bounds whose truth is near the edge, so that breaking them is easy ----


def goals(cell: Cell) -> tuple[Bound, ...]:
    """The bounds of a cell."""
    a, best = cell.alpha, lambda e, m=True: optimum(e, m, cell)
    simple: dict[str, Callable[[], tuple[Bound, ...]]] = {
        "fpr": lambda: (fpr <= a,),
        "tnr": lambda: (tnr >= 1 - a,),
        "recall": lambda: (recall >= 1 - a,),
        "fnr": lambda: (fnr <= a,),
        "coverage": lambda: (coverage <= a,),
        "precision": lambda: (precision >= 1 - a,),
        "npv": lambda: (npv >= 1 - a,),
        "f_score(1)": lambda: (f_score(1) >= best(f_score(1)) - a,),
        "f_score(2)": lambda: (f_score(2) >= best(f_score(2)) - a,),
        "error": lambda: (error <= best(error, False) + a,),
        "balanced_error": lambda: (balanced_error <= best(balanced_error, False) + a,),
        "fpr and recall": lambda: (fpr <= 4 * a, recall >= tight_recall(4 * a) - 0.05),
        "fpr and precision": lambda: (fpr <= a, precision >= 0.9),
        "fpr by group": lambda: (fpr <= a,),
        "gap at fpr": lambda: (fpr <= 0.1, abs(on("a") - on("b")) <= 0.1 + a),
        "fpr, 20 models": lambda: (fpr <= a,),
        "fpr on average": lambda: (fpr <= a,),
        "precision at 5 %": lambda: (precision >= 1 - 4 * a,),
    }
    return simple[cell.name]()


def on(group: str) -> Expression:
    return tpr.on(group=group)


def tight_recall(level: float) -> float:
    """The recall at which the two bounds leave one threshold."""
    from scipy.special import ndtri

    return float(ndtr(SHIFT - ndtri(1 - level)))


SETTINGS: dict[str, dict[str, Any]] = {
    "recall": {"prevalence": 0.8},
    "fnr": {"prevalence": 0.8},
    "precision": {"prevalence": 0.5},
    "npv": {"prevalence": 0.5},
    "fpr and precision": {"prevalence": 0.5},
}
FULL = ("fpr", "recall", "coverage", "precision", "f_score(1)")
ONCE = (
    *("tnr", "fnr", "npv", "f_score(2)", "error", "balanced_error", "fpr and recall"),
    *("fpr and precision", "fpr by group", "gap at fpr", "fpr, 20 models", "fpr on average"),
    "precision at 5 %",
)


def cells(quick: bool) -> Iterator[Cell]:
    """Everything that is simulated."""
    draws = 300 if quick else 2000
    for name in FULL + ONCE:
        sizes = (500, 2000, 10_000) if name in FULL and not quick else (2000,)
        kinds = tuple(QUANTIZERS)
        if name == "fpr, 20 models":
            kinds = ("continuous", "tied")
        if quick:
            kinds = ("continuous", "tied") if name in FULL else ("continuous",)
        for kind in kinds:
            for n in sizes:
                for alpha in (0.01, 0.05) if not quick else (0.05,):
                    yield Cell(name, alpha, kind, n, draws, **SETTINGS.get(name, {}))


# ---- the truth ----


def truth(cut: Any, cell: Cell, group: str | None = None, prior: float | None = None) -> Counts:
    """The cells of the population where latent scores above ``cut`` are accepted."""
    share = cell.prevalence if prior is None else prior
    shifts = list(GROUPS.values()) if by_group(cell) else [SHIFT]
    shifts = [GROUPS[group]] if group else shifts
    tp = share * np.mean([ndtr(shift - np.asarray(cut)) for shift in shifts], axis=0)
    fp = (1 - share) * ndtr(-np.asarray(cut))
    return Counts(tp, fp, share - tp, 1 - share - fp, share, 1 - share)


def tables(cut: Any, cell: Cell, prior: float | None = None) -> dict[Where, Counts]:
    found: dict[Where, Counts] = {(): truth(cut, cell, prior=prior)}
    return found | {(("group", g),): truth(cut, cell, g) for g in GROUPS}


def optimum(expression: Expression, maximize: bool, cell: Cell) -> float:
    values = expression.of({(): truth(np.linspace(-3, 6, 9001), cell)})
    return float(values.max() if maximize else values.min())


def by_group(cell: Cell) -> bool:
    return cell.name in ("fpr by group", "gap at fpr")


def broken(thresholds: Floats, bounds: tuple[Bound, ...], cell: Cell) -> NDArray[np.bool_]:
    """Whether each threshold breaks the promise; NaN: no threshold, no promise."""
    prior = 0.05 if cell.name == "precision at 5 %" else None
    with np.errstate(all="ignore"):
        at = tables(latent(thresholds, cell.kind), cell, prior)
        gaps = [np.asarray(bound.gap(at)) for bound in bounds]
    return (np.max(gaps, axis=0) > 1e-12) & ~np.isnan(thresholds)


def kept(thresholds: Floats, cell: Cell) -> Floats:
    """Recall, or for floors on recall the specificity; 0 without a threshold."""
    with np.errstate(all="ignore"):
        at = {(): truth(latent(thresholds, cell.kind), cell)}
        rate = tnr if cell.name in ("recall", "fnr") else recall
        return np.where(np.isnan(thresholds), 0.0, rate.of(at))


def missed(thresholds: Floats, intervals: Floats, cell: Cell) -> float:
    """How often the interval of the other rate does not hold the true rate."""
    share = kept(thresholds, cell)
    rate = 1 - share if cell.name in ("recall", "fnr") else share
    outside = (rate < intervals[:, 0] - 1e-12) | (rate > intervals[:, 1] + 1e-12)
    return float(np.mean(outside))


# ---- methods: each gives one threshold a draw, NaN if it promises nothing ----


@dataclass(frozen=True)
class Draw:
    """One calibration sample."""

    latent: Floats
    scores: Any
    labels: NDArray[np.bool_]
    groups: NDArray[Any] | None


def draw(cell: Cell, random: np.random.Generator) -> Draw:
    labels = random.random(cell.n) < cell.prevalence
    groups, shift = None, SHIFT * labels
    if by_group(cell):
        groups = np.where(random.random(cell.n) < 0.5, "a", "b")
        shift = np.where(groups == "a", GROUPS["a"], GROUPS["b"]) * labels
    s = random.normal(size=cell.n) + shift
    scores = QUANTIZERS[cell.kind](s)
    given = torch.from_numpy(scores).bfloat16() if cell.kind == "bf16" else scores
    return Draw(s, given, labels, groups)


def ours(cell: Cell, data: Draw, bounds: tuple[Bound, ...]) -> tuple[Any, list[float]]:
    """The threshold (or one a group), and the interval of the rate of the other class."""
    options: dict[str, Any] = {"groups": data.groups} if by_group(cell) else {}
    if cell.name == "fpr on average":
        options["guarantee"] = "mean"
    if cell.name == "precision at 5 %":
        options["prevalence"] = 0.05
    found = certify(data.scores, data.labels, bounds, confidence=1 - DELTA, **options)
    if cell.name == "fpr by group":
        none = [math.nan, math.nan]
        return (list(found.thresholds.values()) if found else none), none
    if not found:
        return math.nan, [math.nan, math.nan]
    return found.threshold, [found.objective[0].low, found.objective[0].high]


def naive(cell: Cell, data: Draw, bounds: tuple[Bound, ...]) -> float:
    """The threshold that keeps the bounds on these very data and finds most."""
    s = data.scores.double().numpy() if isinstance(data.scores, torch.Tensor) else data.scores
    order = np.argsort(-s, kind="stable")
    s = s[order]
    ends = np.append(s[:-1] != s[1:], True)
    found: dict[Where, Counts] = {(): _running(data.labels[order], ends)}
    for group in GROUPS if by_group(cell) else ():
        inside = data.groups[order] == group if data.groups is not None else ends
        found[(("group", group),)] = _running(data.labels[order], ends, inside)
    with np.errstate(all="ignore"):
        holds = np.all([b.gap(found) <= 1e-12 for b in bounds], axis=0)
    if not holds.any():
        return math.nan
    after = np.append(s[1:], -np.inf)[ends]
    floor = cell.name in ("recall", "fnr")
    at = np.flatnonzero(holds)[0 if floor else -1]
    return float(after[at])


def _running(labels: Any, ends: Any, inside: Any = True) -> Counts:
    tp = np.cumsum(labels & inside)
    fp = np.cumsum(~labels & inside)
    p, n = float(tp[-1]), float(fp[-1])
    tp, fp = tp[ends].astype(float), fp[ends].astype(float)
    return Counts(tp, fp, p - tp, n - fp, p, n)


def mapie(cell: Cell, data: Draw, grid: int) -> float:
    """MAPIE's own way: a grid of probabilities; in latent units, ``>=`` being ``>`` there."""
    from mapie.risk_control import BinaryClassificationController

    odds = math.log(cell.prevalence / (1 - cell.prevalence))
    p = expit(SHIFT * data.latent - SHIFT**2 / 2 + odds)
    risk = {"fpr": "fpr", "recall": "recall", "precision": "precision"}[cell.name]
    options: dict[str, Any] = {}
    if grid > 100:
        options = {"list_predict_params": np.linspace(0, 1, grid + 1)[1:-1]}
        options["fwer_method"] = "fixed_sequence"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = BinaryClassificationController(
            lambda x: np.stack([1 - x[:, 0], x[:, 0]], 1),
            risk,
            cell.alpha if cell.name == "fpr" else 1 - cell.alpha,
            confidence_level=1 - DELTA,
            **options,
        ).calibrate(p[:, None], data.labels.astype(int))
    chosen = controller.best_predict_param
    if chosen is None:
        return math.nan
    with np.errstate(divide="ignore"):
        return float((np.log(chosen) - np.log1p(-chosen) - odds + SHIFT**2 / 2) / SHIFT)


def models(cell: Cell, random: np.random.Generator, bounds: tuple[Bound, ...]) -> tuple[Any, ...]:
    """Of 20 equally good checkpoints the one with the best recall at its own threshold.

    Scores are the shared latent ones plus noise of each checkpoint's own, so the truth is that of a
    Gaussian with a smaller shift.
    """
    data = draw(cell, random)
    best: dict[str, tuple[float, float]] = {"ours": (-1, math.nan), "naive": (-1, math.nan)}
    best["uncorrected"] = (-1, math.nan)
    for _ in range(CHECKPOINTS):
        s = (data.latent + random.normal(size=cell.n)) / math.sqrt(2)
        scores = QUANTIZERS[cell.kind](s)
        own = Draw(s, scores, data.labels, None)
        for method, count in (("ours", CHECKPOINTS), ("uncorrected", 1)):
            found = certify(scores, data.labels, bounds, confidence=1 - DELTA, candidates=count)
            if found:
                best[method] = max(best[method], (_measured(own, found.threshold), found.threshold))
        t = naive(cell, own, bounds)
        best["naive"] = max(best["naive"], (_measured(own, t), t))
    return tuple(best[method][1] for method in ("ours", "naive", "uncorrected"))


def _measured(data: Draw, threshold: float) -> float:
    return float(np.mean(data.scores[data.labels] > threshold))


# ---- running ----


def run(cell: Cell, with_mapie: bool) -> dict[str, Any]:
    bounds, began = goals(cell), time.perf_counter()
    random = np.random.default_rng([abs(hash_of(cell)), 1])
    thresholds: dict[str, list[Any]] = {"ours": [], "naive": []}
    intervals: list[list[float]] = []
    for i in range(cell.draws):
        if cell.name == "fpr, 20 models":
            found = models(cell, random, bounds)
            for method, t in zip(("ours", "naive", "uncorrected"), found, strict=True):
                thresholds.setdefault(method, []).append(t)
            continue
        data = draw(cell, random)
        threshold, interval = ours(cell, data, bounds)
        thresholds["ours"].append(threshold)
        intervals.append(interval)
        if cell.name != "fpr by group" and cell.name != "precision at 5 %":
            thresholds["naive"].append(naive(cell, data, bounds))
        if with_mapie and cell.kind == "continuous" and cell.name in ("fpr", "recall", "precision"):
            if i < 500:
                thresholds.setdefault("MAPIE", []).append(mapie(cell, data, 100))
            if i < 100:
                thresholds.setdefault("MAPIE, 1,000", []).append(mapie(cell, data, 1000))
    found = {name: summary(np.array(ts), bounds, cell) for name, ts in thresholds.items() if ts}
    if intervals and cell.name != "fpr by group":
        found["ours"]["missed"] = missed(np.array(thresholds["ours"]), np.array(intervals), cell)
    seconds = time.perf_counter() - began
    return {**asdict(cell), "bounds": list(map(str, bounds)), "seconds": seconds, "found": found}


def summary(thresholds: Floats, bounds: tuple[Bound, ...], cell: Cell) -> dict[str, float]:
    if cell.name == "fpr, 20 models":  # positives of a checkpoint are nearer
        return _summary(thresholds, bounds, cell, SHIFT / math.sqrt(2))
    return _summary(thresholds, bounds, cell, None)


def _summary(
    thresholds: Floats, bounds: tuple[Bound, ...], cell: Cell, shift: float | None
) -> dict[str, float]:
    flat = thresholds if thresholds.ndim == 1 else thresholds.max(1)
    bad = np.any(
        [broken(column, bounds, cell) for column in thresholds.reshape(len(thresholds), -1).T],
        axis=0,
    )
    keeps = kept(flat, cell)
    if shift is not None:
        keeps = np.where(np.isnan(flat), 0, ndtr(shift - latent(flat, cell.kind)))
    found = {
        "draws": len(flat),
        "promised": float(np.mean(~np.isnan(flat))),
        "broken": float(np.mean(bad)),
        "kept": float(np.mean(keeps)),
    }
    if cell.name == "fpr on average":
        rates = ndtr(-latent(flat, cell.kind))
        found |= {"mean": float(rates.mean()), "se": float(rates.std() / math.sqrt(len(rates)))}
    return found


def hash_of(cell: Cell) -> int:
    import zlib

    return zlib.crc32(repr(cell).encode())


def fine(row: dict[str, Any]) -> bool:
    """Whether violations are within delta and three standard errors."""
    found = row["found"]["ours"]
    most = DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / found["draws"])
    if found.get("missed", 0.0) > most:
        return False
    if "mean" in found:
        return bool(found["mean"] <= row["alpha"] + 3 * found["se"])
    return bool(found["broken"] <= most)


def large() -> dict[str, Any]:
    """10,000,000 scores, each goal in a process of its own."""
    code = """
import json, resource, sys, time
import numpy as np
from setpoint.certify import certify
random = np.random.default_rng(0)
y = random.random(10_000_000) < 0.1
s = random.normal(size=len(y)) + 2.5 * y
began = time.perf_counter()
c = certify(s, y, sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([c.status, time.perf_counter() - began, peak, "torch" in sys.modules]))
"""
    found = {}
    for goal in ("fpr <= 0.001", "recall >= 0.95", "precision >= 0.9", "f_score(1) >= 0.6"):
        out = subprocess.run(
            [sys.executable, "-c", code, goal], capture_output=True, text=True, check=True
        )
        status, seconds, peak, _ = json.loads(out.stdout)
        found[goal] = {"status": status, "seconds": seconds, "megabytes": peak}
        print(f"{goal:20} {status}  {seconds:.1f} s  {peak:.0f} MB", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for flag in ("quick", "large", "docs"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    path = given.out or (RESULTS.with_name("certificates_quick.json") if given.quick else RESULTS)
    book = json.loads(path.read_text()) if path.exists() else {"rows": []}
    book |= {"setpoint": __version__, "numpy": np.__version__, "python": platform.python_version()}
    path.parent.mkdir(exist_ok=True)
    if given.large:
        book["large"] = large()
        _write(path, book)
        return
    if not given.docs:
        _simulate(book, path, given.quick)
    if given.docs:
        write_docs(book)


def _simulate(book: dict[str, Any], path: Path, quick: bool) -> None:
    try:
        import mapie as found

        book["mapie"] = found.__version__
    except ImportError:
        print("MAPIE is not installed: its column stays empty.")
    done = {json.dumps([row[key] for key in asdict(CELL_KEYS)]) for row in book["rows"]}
    for cell in cells(quick):
        if json.dumps(list(asdict(cell).values())) in done:
            continue
        row = run(cell, "mapie" in book)
        book["rows"].append(row)
        _write(path, book)
        print(_line(row), flush=True)
    bad = [row for row in book["rows"] if not fine(row)]
    print(f"{len(book['rows'])} cells, {len(bad)} with too many broken promises")
    sys.exit(1 if bad else 0)


CELL_KEYS = Cell("", 0, "", 0, 0)


def _write(path: Path, book: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(book, indent=1))
    os.replace(part, path)


def _line(row: dict[str, Any]) -> str:
    ours = row["found"]["ours"]
    text = f"{row['name']:18} {row['kind']:10} n={row['n']:<6} {row['alpha']:<5}"
    text += f" promised {ours['promised']:.3f} broken {ours['broken']:.4f} kept {ours['kept']:.3f}"
    text += f" missed {ours.get('missed', math.nan):.4f}"
    for name, found in row["found"].items():
        if name != "ours":
            text += f" | {name} {found['broken']:.3f} {found['kept']:.3f}"
    return text + f" | {row['seconds']:.0f} s{'' if fine(row) else '  TOO MANY'}"


# ---- the page ----


def write_docs(book: dict[str, Any]) -> None:
    text = PAGE.read_text()
    for name, table in (("simulation", _table(book)), ("large", _large_table(book))):
        start, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = text.split(start)
        text = f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"
    PAGE.write_text(text)


def _table(book: dict[str, Any]) -> str:
    lines = [
        "| goal | alpha | scores | n | certified | broken | kept | naive: broken, kept | MAPIE: "
        "broken, kept |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in book["rows"]:
        found, ours = row["found"], row["found"]["ours"]
        percent = lambda x: f"{100 * x:.1f}"  # noqa: E731
        others = [
            " / ".join(
                f"{percent(found[m]['broken'])}, {percent(found[m]['kept'])}"
                for m in names
                if m in found
            )
            for names in (("naive", "uncorrected"), ("MAPIE", "MAPIE, 1,000"))
        ]
        cells_ = [
            row["name"],
            f"{100 * row['alpha']:g} %",
            row["kind"],
            f"{row['n']:,}",
            percent(ours["promised"]),
            percent(ours["broken"]) if "mean" not in ours else f"mean {100 * ours['mean']:.3f}",
            percent(ours["kept"]),
            *others,
        ]
        lines.append("| " + " | ".join(cells_) + " |")
    return "\n".join(lines)


def _large_table(book: dict[str, Any]) -> str:
    lines = [
        "| goal, 10,000,000 scores | verdict | seconds | peak memory |",
        "| --- | --- | --- | --- |",
    ]
    for goal, found in book.get("large", {}).items():
        row = [
            f"`{goal}`",
            found["status"],
            f"{found['seconds']:.1f}",
            f"{found['megabytes']:.0f} MB",
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
