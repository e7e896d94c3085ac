"""Table 5 in words and pictures: both readings, paired differences, curves, other ranges."""

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.peers.page import IMAGES, gain, spread, table
from benchmarks.peers.published import TITLES
from benchmarks.peers.readings import GRID

PUBLISHED = {
    "letter": (15.13, 20.49, 23.04, 0.77),
    "ijcnn1": (21.18, 26.14, 27.28, 0.58),
    "adult": (39.74, 40.21, 40.34, 0.41),
    "spambase": (71.51, 73.08, 73.48, 1.80),
    "crime": (47.00, 47.04, 47.03, 1.08),
}
"""Cross-entropy, TFCO, ICO and ICO's interval, as the paper prints them."""
PUBLISHED |= {"adult122": PUBLISHED["adult"], "crime145": PUBLISHED["crime"]}
OURS = "default"
Row = dict[str, Any]


def text(rows: list[Row]) -> str:
    """Two tables of means, one of paired differences to the first, and the paper's own values."""
    rows = [row for row in rows if "few" not in row["cell"]]
    if not rows:
        return "No rows yet."
    parts = []
    for reading, words in (
        ("curve", "Area under the curve over the width of the range"),
        ("anchors", "Mean precision at five recalls, 0.955 to 0.995"),
    ):
        value = _values(rows, reading)
        sets = list(dict.fromkeys(key[0] for key in value))
        names = [n for n in TITLES if any(key[1] == n for key in value)]
        lines = [
            [TITLES[n], *(spread(list(value.get((d, n), {}).values())) for d in sets)]
            for n in names
        ]
        lines += _published(sets)
        parts.append(table([f"{words}: points", *sets], lines))
        parts.append(_behind(value, sets, names))
    return "\n\n".join(parts)


def _values(rows: list[Row], reading: str) -> dict[tuple[str, str], dict[int, float]]:
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows:
        for name, result in row["methods"].items():
            found[row["cell"]["data"], name][row["cell"]["seed"]] = result[reading]
    return found


def _published(sets: list[str]) -> list[list[str]]:
    shown = []
    for place, name in enumerate(("cross-entropy", "TFCO", "ICO")):
        line = [f"*the paper's own: {name}*"]
        for data in sets:
            value = PUBLISHED[data][place]
            error = f" ± {PUBLISHED[data][3]}" if name == "ICO" else ""
            line.append(f"{value:.2f}{error}")
        shown.append(line)
    return shown


def _behind(value: Any, sets: list[str], names: list[str]) -> str:
    """The best other method on each set, and `Implicit` minus it on the same splits."""
    lines = []
    for data in sets:
        ours = value.get((data, OURS), {})
        others = [n for n in names if n != OURS and set(value.get((data, n), {})) >= set(ours)]
        if not ours or not others:
            continue
        first = max(others, key=lambda n: np.mean([value[data, n][s] for s in ours]))
        d = np.array([ours[s] - value[data, first][s] for s in ours])
        error = d.std(ddof=1) / len(d) ** 0.5 if len(d) > 1 else float("nan")
        inside = abs(np.mean(list(ours.values())) - PUBLISHED[data][2]) <= PUBLISHED[data][3]
        above = np.mean(list(ours.values())) > PUBLISHED[data][2]
        lines.append(
            [
                data,
                TITLES[first],
                gain(d),
                "met" if d.mean() >= 0 or abs(d.mean()) <= error else "**not met**",
                "inside" if inside else "above" if above else "**below**",
            ]
        )
    head = ["", "best of the others", "`Implicit` minus it", "first or within one se"]
    return table([*head, "ICO's published interval"], lines)


def draw(rows: list[Row]) -> None:
    """Figure 2: precision against recall; Figure 3: the metric against the start of the range."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = ["cross-entropy", "TFCO", "Lagrangian", "proxy-Lagrangian", "paper's grid", OURS]
    shades = ("0.55", "#8b5fbf", "#2b4c9b", "#56b4e9", "#c05621", "#0b6e4f")
    colours = dict(zip(names, shades, strict=True))
    sets, swept = ("letter", "ijcnn1"), any("few" in row["cell"] for row in rows)
    figure, axes = plt.subplots(
        1 + swept, 2, figsize=(9, 3.2 + 3.2 * swept), layout="constrained", squeeze=False
    )
    for column, data in enumerate(sets):
        mine = [row for row in rows if row["cell"]["data"] == data]
        for name in names:
            style = {"color": colours[name], "label": _short(name)}
            curves = [r["methods"][name]["precision"] for r in mine if _whole(r, name)]
            if curves:
                axes[0, column].plot(GRID, np.mean(curves, 0), **style)
            by_start = defaultdict(list)
            for row in mine:
                if "few" in row["cell"] and name in row["methods"]:
                    by_start[row["cell"]["start"]].append(row["methods"][name]["curve"])
            if by_start:
                x = sorted(by_start)
                axes[1, column].plot(x, [np.mean(by_start[s]) for s in x], "o-", **style)
        axes[0, column].axvspan(0.95, 1, color="0.93", zorder=0)
        axes[0, column].set(title=data, xlabel="recall", ylabel="precision")
        if swept:
            axes[1, column].set(xlabel="start of the range", ylabel="PR-AUC in [start, 1], points")
    known = axes[0, 0].get_legend_handles_labels()
    figure.legend(*known, loc="outside upper center", ncols=6, frameon=False, fontsize=8)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "peers_table5.png", dpi=150)
    plt.close(figure)


def _whole(row: Row, name: str) -> bool:
    """Whether a row is one of Table 5 itself and has this method."""
    return "few" not in row["cell"] and name in row["methods"]


def _short(name: str) -> str:
    return TITLES[name].split(",")[0].strip("*").replace("`", "")
