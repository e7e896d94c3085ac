"""The study's answers: gains by model, slopes by width and rarity, errors clustered by table."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from scipy.stats import t as student
from scipy.stats import trim_mean

from benchmarks.common.pages import fill
from benchmarks.common.results import Row
from benchmarks.study.boosted import NAME as TREES
from benchmarks.study.methods import OURS, PLAIN
from benchmarks.study.metrics import FPR, GOALS, TITLES

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PAGE = Path(__file__).parents[2] / "docs" / "study.md"
PLOT = PAGE.parent / "images" / "study.svg"
MODELS = {
    "linear": (0,),
    "2 to 8 units": (2, 4, 8),
    "32 units": (32,),
    "128 units": (128,),
}


class Estimate(NamedTuple):
    """A mean over tables with its standard error and 95 % interval by Student's t."""

    mean: float
    error: float
    low: float
    high: float
    tables: int

    def __str__(self) -> str:
        if not self.tables:
            return "not run"
        return (
            f"{self.mean:+.2f} ({self.error:.2f}; {self.low:+.2f} to {self.high:+.2f}, "
            f"{self.tables} tables)"
        )


class Gain(NamedTuple):
    """Ours minus the baseline that validation prefers, in one cell for one goal."""

    data: str
    fold: int
    hidden: int
    contaminated: float
    goal: str
    points: float
    best: str


def complete(rows: list[Row]) -> list[Row]:
    """The rows of those folds, widths and noises that were run on all tables."""
    ours: dict[tuple[int, int, float], set[str]] = defaultdict(set)
    for row in rows:
        if row["method"] == OURS:
            ours[block(row)].add(row["data"])
    tables = len({row["data"] for row in rows})
    return [row for row in rows if len(ours[block(row)]) == tables]


def block(row: Row) -> tuple[int, int, float]:
    """What is run on all tables before the next is begun."""
    return row["fold"], row["hidden"], row["contaminated"]


def gains(rows: Iterable[Row], against: str | None = None) -> list[Gain]:
    """Every cell and goal that has both ours and the best baseline, or one baseline by name.

    Plain cross-entropy is one of the weighted, and no candidate of its own.
    """
    found: dict[tuple[str, int, int, float, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        key = (row["data"], row["fold"], row["hidden"], row["contaminated"], row["goal"])
        if row["method"] in (OURS, against) or not (against or row["method"] in (TREES, PLAIN)):
            found[key][row["method"]] = row
    made = []
    for key, methods in found.items():
        ours = methods.pop(OURS, None)
        if ours and methods:
            best = max(methods.values(), key=lambda row: row["validation"])
            made.append(Gain(*key, ours["test"] - best["test"], best["method"]))
    return made


def clustered(values: dict[str, float]) -> Estimate:
    """The mean of one value a table; tables are the independent units."""
    x = np.array([value for value in values.values() if np.isfinite(value)])
    if len(x) < 2:
        return Estimate(float(x.mean()) if len(x) else np.nan, np.nan, np.nan, np.nan, len(x))
    error = float(x.std(ddof=1) / len(x) ** 0.5)
    reach = float(student.ppf(0.975, len(x) - 1)) * error
    return Estimate(float(x.mean()), error, x.mean() - reach, x.mean() + reach, len(x))


def by_table(found: Iterable[Gain]) -> dict[str, float]:
    """The mean gain of each table, every goal the same weight."""
    goals: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for gain in found:
        goals[gain.data][gain.goal].append(gain.points)
    return {
        data: float(np.mean([np.mean(points) for points in mine.values()]))
        for data, mine in goals.items()
    }


def slopes(found: Iterable[Gain], x: dict[str, float] | None = None) -> dict[str, float]:
    """Points of gain for each doubling of the width (linear counts as one unit), table by table.

    With ``x``, a number for every goal: points for each unit of it. Folds and goals (or widths)
    have intercepts of their own.
    """
    mine: dict[str, dict[tuple[object, ...], list[tuple[float, float]]]]
    mine = defaultdict(lambda: defaultdict(list))
    for gain in found:
        if x is None:
            key, place = (gain.fold, gain.goal), float(np.log2(max(gain.hidden, 1)))
        elif gain.goal in x:
            key, place = (gain.fold, gain.hidden), x[gain.goal]
        else:
            continue
        mine[gain.data][key].append((place, gain.points))
    made = {}
    for data, groups in mine.items():
        centred = [np.array(pairs) - np.mean(pairs, axis=0) for pairs in groups.values()]
        place, points = np.concatenate(centred).T
        made[data] = float(place @ points / (place @ place)) if (place @ place) > 0 else np.nan
    return made


def text(rows: list[Row]) -> str:
    """Hypotheses with their estimates, the exploration, then every table."""
    rows = complete(rows)
    found = [gain for gain in gains(rows) if gain.contaminated == 0.0]
    if not found:
        return "No rows yet."
    small = [gain for gain in found if gain.hidden <= 8]
    rarity = {goal: -float(np.log10(rate)) for goal, rate in FPR.items()}
    lines = [
        _folds(found),
        "",
        "Points over the best baseline picked on validation: mean (standard error; 95 % interval "
        "by Student's t; errors clustered by table).",
        "",
        "| | all goals | FPR goals alone |",
        "| --- | --- | --- |",
        _line("H1 linear and up to 8 units", small),
        *(
            _line(f"H2 {name}", [gain for gain in found if gain.hidden in widths])
            for name, widths in MODELS.items()
        ),
        "",
        f"H3, slope for each doubling of the width: {clustered(slopes(found))}.",
        "",
        f"H4, slope for each factor of ten in rarity (FPR goals, linear and up to 8 units): "
        f"{clustered(slopes(small, rarity))}.",
        "",
        _noise(gains(rows)),
        "",
        _single_baselines(rows),
        "",
        _every_table(found),
        "",
        _trees(rows),
    ]
    return "\n".join(lines)


def _line(name: str, found: list[Gain]) -> str:
    rates = [gain for gain in found if gain.goal in FPR]
    return f"| {name} | {clustered(by_table(found))} | {clustered(by_table(rates))} |"


def _folds(found: list[Gain]) -> str:
    """How many folds each width has, in words."""
    folds: dict[int, set[int]] = defaultdict(set)
    for gain in found:
        folds[gain.hidden].add(gain.fold)
    shown = (f"{_model(width)} {len(folds[width])}" for width in sorted(folds))
    return f"Test folds that were run on every table, of 3: {', '.join(shown)}."


def _model(width: int) -> str:
    return f"{width} units" if width else "linear"


def _single_baselines(rows: list[Row]) -> str:
    """Ours against each baseline alone: mean by table, median and trimmed mean of the cells."""
    clean = [row for row in rows if row["contaminated"] == 0.0]
    names = list(
        dict.fromkeys(row["method"] for row in clean if row["method"] not in (OURS, TREES))
    )
    models = {name: widths for name, widths in MODELS.items() if name != "128 units"}
    lines = [
        "Exploratory, not registered: points over each baseline alone. Mean (clustered standard "
        "error), median and 10 % trimmed mean of the cells; cells ahead and behind by more than a "
        "point.",
        "",
        f"| baseline | {' | '.join(models)} |",
        "| --- |" + " --- |" * len(models),
    ]
    for name in (None, *names):
        found = gains(clean, name)
        shown = [_spread([g for g in found if g.hidden in widths]) for widths in models.values()]
        lines.append(f"| {name or 'best on validation (registered)'} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _spread(found: list[Gain]) -> str:
    points = np.array([gain.points for gain in found])
    if not len(points):
        return ""
    mean, ahead, behind = clustered(by_table(found)), (points > 1).sum(), (points < -1).sum()
    return (
        f"{mean.mean:+.2f} ({mean.error:.2f}), {np.median(points):+.2f}, "
        f"{trim_mean(points, 0.1):+.2f}; {ahead} : {behind}"
    )


def _noise(found: list[Gain]) -> str:
    lines = ["| H5, negatives that are positives | linear | 8 units |", "| --- | --- | --- |"]
    for noise in sorted({gain.contaminated for gain in found}):
        entries = [
            clustered(by_table(g for g in found if (g.contaminated, g.hidden) == (noise, hidden)))
            for hidden in (0, 8)
        ]
        lines.append(f"| {noise:.0%} | {entries[0]} | {entries[1]} |")
    return "\n".join(lines)


def _every_table(found: list[Gain]) -> str:
    """Mean over folds of each cell, and the spread over folds where there are several."""
    widths = sorted({gain.hidden for gain in found})
    heads = " | ".join(map(_model, widths))
    lines = [
        "The gain cell by cell, with its standard error over folds:",
        "",
        f"| table | goal | {heads} |",
        "| --- | --- |" + " ---: |" * len(widths),
    ]
    for data in dict.fromkeys(gain.data for gain in found):
        for goal in GOALS:
            entries = []
            for width in widths:
                key = (data, goal, width)
                points = [g.points for g in found if (g.data, g.goal, g.hidden) == key]
                spread = (
                    f" ({np.std(points, ddof=1) / len(points) ** 0.5:.1f})" if points[1:] else ""
                )
                entries.append(f"{np.mean(points):+.1f}{spread}" if points else "")
            if any(entries):
                lines.append(f"| {data} | {TITLES[goal]} | {' | '.join(entries)} |")
    return "\n".join(lines)


def _trees(rows: list[Row]) -> str:
    """The metric itself: linear and 32 units by us, and LightGBM."""
    lines = [
        "The metric itself, beside LightGBM:",
        "",
        "| table | goal | ours, linear | ours, 32 units | LightGBM |",
        "| --- " * 5 + "|",
    ]
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["contaminated"] == 0.0:
            name = row["method"] if row["method"] == TREES else f"{row['method']} {row['hidden']}"
            values[row["data"], row["goal"], name].append(row["test"])
    for data, goal in dict.fromkeys(key[:2] for key in values):
        names = (f"{OURS} 0", f"{OURS} 32", TREES)
        found = [values.get((data, goal, name)) for name in names]
        cells = " | ".join(f"{np.mean(v):.1f}" if v else "" for v in found)
        lines.append(f"| {data} | {TITLES[goal]} | {cells} |")
    return "\n".join(lines)


def write(rows: list[Row]) -> None:
    """The results between the marks of the page, and the picture."""
    fill(PAGE, "results", text(rows))
    draw([gain for gain in gains(complete(rows)) if gain.contaminated == 0.0], PLOT)


def draw(found: list[Gain], file: Path) -> None:
    """The gain against the width, a line for each goal, thin lines for tables."""
    figure, panels = plt.subplots(1, len(FPR), figsize=(10, 3.4), sharey=True, layout="constrained")
    widths = sorted({gain.hidden for gain in found})
    places = np.arange(len(widths))
    for panel, goal in zip(panels, FPR, strict=True):
        mine = [gain for gain in found if gain.goal == goal]
        for data in dict.fromkeys(gain.data for gain in mine):
            panel.plot(places, _means(mine, data, widths), color="0.75", lw=0.8)
        means = [clustered(by_table(g for g in mine if g.hidden == width)) for width in widths]
        panel.errorbar(
            places,
            [m.mean for m in means],
            [m.error for m in means],
            color="#0b6e4f",
            marker="o",
            capsize=3,
        )
        panel.axhline(0, color="0.5", lw=0.8)
        panel.set_xticks(places, ["linear" if not width else str(width) for width in widths])
        panel.set_xlabel("hidden units")
        panel.set_title(TITLES[goal])
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("points over the best baseline")
    figure.savefig(file, transparent=True)
    plt.close(figure)


def _means(found: list[Gain], data: str, widths: list[int]) -> list[float]:
    """The mean over folds at every width; not a number where nothing was run."""
    made = []
    for width in widths:
        points = [g.points for g in found if (g.data, g.hidden) == (data, width)]
        made.append(float(np.mean(points)) if points else np.nan)
    return made
