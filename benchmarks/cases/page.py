"""Tables and pictures of the cases, written between the marks of docs/cases/NAME.md."""

from pathlib import Path

import matplotlib
import numpy as np
from scipy.stats import t as student

from benchmarks.cases.data import CASES
from benchmarks.common.pages import fill
from benchmarks.common.results import Row
from setpoint import Problem

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parents[2] / "docs" / "cases"
KINDS = 4  # of positives, the most frequent, if they have kinds
COLOURS = {"setpoint": "#0b6e4f"}
OTHER = "#8a8f98"
LEFT_OUT = "setpoint, boosted"  # level with LightGBM, and a part of the default


def table(name: str, rows: list[Row]) -> str:
    """A line for every model: mean over splits and the half width of a 95 % interval."""
    mine = of_case(name, rows)
    if not mine:
        return "No rows yet."
    held = _held(name)
    columns = {"recall": "recall", held: f"{held} on new rows", "precision": "precision"}
    columns |= {key: key for key in mine[0] if key.startswith("recall of ")}
    columns["saved"] = "saved per 1,000 rows"
    if held == "recall":
        columns["coverage"] = "people sent on"
    heads = " | ".join(columns.values())
    lines = [f"| model | certified | {heads} |", "| --- | --- |" + " ---: |" * len(columns)]
    for model in dict.fromkeys(row["model"] for row in mine):
        runs = [row for row in mine if row["model"] == model]
        proved = sum(row["status"].startswith("certified") for row in runs)
        entries = [_entry([row.get(key) for row in runs], key) for key in columns]
        lines.append(f"| {model} | {proved} of {len(runs)} | {' | '.join(entries)} |")
    return "\n".join(lines)


def of_case(name: str, rows: list[Row]) -> list[Row]:
    """The rows of a case that are shown, the default first."""
    mine = [
        {"saved": _saved(name, row), **row}
        for row in rows
        if row["case"] == name and row["model"] != LEFT_OUT
    ]
    return sorted(mine, key=lambda row: row["model"] != "setpoint, the default")


def _saved(name: str, row: Row) -> float:
    """What decisions on 1,000 rows save, at the prices of the case."""
    case, precision = CASES[name], row["precision"] or 0.0
    return 1000 * row["coverage"] * (case.found * precision - case.alarm * (1 - precision))


def _held(name: str) -> str:
    """The rate that the goal bounds."""
    (bound,) = Problem.parse(CASES[name].goal).subject_to
    return str(bound.expression)


def _entry(values: list[float | None], key: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    scale, unit = (1.0, "") if key == "saved" else (100.0, " %")
    digits = {"fpr": 2, "coverage": 2, "saved": 0}.get(key, 1)
    text = f"{scale * float(np.mean(known)):,.{digits}f}{unit}"
    if len(known) > 1:
        reach = student.ppf(0.975, len(known) - 1) * np.std(known, ddof=1) / len(known) ** 0.5
        text += f" (± {scale * float(reach):,.{digits}f})"
    return text


def write(rows: list[Row]) -> None:
    """Into every page that is there."""
    for name in CASES:
        fill(FOLDER / f"{name}.md", "results", table(name, rows))
        draw(name, of_case(name, rows))


def draw(name: str, rows: list[Row]) -> None:
    """A bar for every model: what it keeps under the promise, and a point for every split."""
    key = "coverage" if _held(name) == "recall" else "recall"
    models = list(dict.fromkeys(row["model"] for row in rows))[::-1]
    figure, axis = plt.subplots(figsize=(7, 2.4), layout="constrained")
    for place, model in enumerate(models):
        values = [100 * row[key] for row in rows if row["model"] == model]
        colour = COLOURS.get(model.partition(",")[0], OTHER)
        axis.barh(place, np.mean(values), color=colour, height=0.6)
        axis.scatter(values, [place] * len(values), color="black", s=12, zorder=3)
    axis.set_yticks(range(len(models)), models)
    wanted = "people sent on, % (less is better)" if key == "coverage" else "recall, %"
    axis.set_xlabel(f"{wanted}, under the certified bound")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / f"{name}.svg", transparent=True)
    plt.close(figure)
