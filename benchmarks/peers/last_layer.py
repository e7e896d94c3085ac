"""Where do LastLayer and a re-trained head help: few positives, overfitting, frozen bodies?

    python -m benchmarks.peers.last_layer --minutes 20     # goes on where it stopped
    python -m benchmarks.peers.last_layer --quick          # a corner, half a minute
    python -m benchmarks.peers.last_layer --docs           # the table into docs/peers.md

Misses at 1 % false alarms, a network with one hidden layer. Training rows are thinned in four ways;
validation and test rows are whole, and every method keeps the pass that is best on validation. A
re-trained head takes cross-entropy's network and learns on validation rows, thinned likewise.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from benchmarks.common import results, tabular
from benchmarks.peers.page import gain, spread, table
from benchmarks.peers.runs import Rows, finish, options
from setpoint import Infeasible, LastLayer, fnr_at_fpr
from setpoint.datasets import DataSplit as Parts
from setpoint.datasets import Table
from setpoint.solvers import METHODS, Method, Penalty, Split
from setpoint.train import Validation, fit_best, retarget, score

DATA = ("letter", "ijcnn1", "adult", "spambase")
GOAL = fnr_at_fpr(0.01)
STEPS, RATE, BATCH = 800, 0.003, 512
PLAIN, RETRAINED = "cross-entropy", "head re-trained"


class Setting(NamedTuple):
    """What is left of the training rows, and the width of the hidden layer."""

    positives: int | None = None
    rows: int | None = None
    width: int = 64


SETTINGS = {
    "all rows": Setting(),
    "50 positives": Setting(positives=50),
    "20 positives": Setting(positives=20),
    "500 rows, width 512": Setting(rows=500, width=512),
}


def _by_penalty(model: nn.Module, problem: Any, steps: int) -> Any:
    split = Split(model, "2")
    return split, LastLayer(problem, split, steps=steps, body=Penalty())


TRAINED: dict[str, Method] = {
    PLAIN: METHODS["cross_entropy"],
    "Implicit": METHODS["implicit"],
    "LastLayer 1": METHODS["last_layer"],
    "LastLayer 2": Method(on=_by_penalty),
}


def thinned(part: Table, setting: Setting, seed: int) -> Table:
    """The rows that are left; the same for every method."""
    random = np.random.default_rng(seed)
    kept = random.permutation(len(part.y))
    if setting.rows is not None:
        kept = kept[: setting.rows]
    if setting.positives is not None:
        positive = part.y[kept] == 1
        kept = np.concatenate([kept[positive][: setting.positives], kept[~positive]])
    return Table(part.x[kept], part.y[kept])


def trained(parts: Parts, setting: Setting, seed: int, steps: int) -> dict[str, dict[str, float]]:
    """Every method on one split, judged on the test part."""
    data = {name: tuple(map(torch.from_numpy, getattr(parts, name))) for name in parts._fields}

    def network() -> nn.Module:
        torch.manual_seed(seed)
        columns = parts.train.x.shape[1]
        return nn.Sequential(
            nn.Linear(columns, setting.width), nn.ReLU(), nn.Linear(setting.width, 1)
        )

    found = {}
    for name, method in TRAINED.items():
        model = _fitted(network, name, method, data, seed, steps)
        found[name] = _judged(model, data)
        if name == PLAIN:
            few = thinned(parts.validation, setting, seed)  # as few as the body had
            retarget(model, "2", GOAL, [tuple(map(torch.from_numpy, few))])
            found[RETRAINED] = _judged(model, data)
    return found


def _fitted(
    network: Callable[[], nn.Module], name: str, method: Method, data: Any, seed: int, steps: int
) -> nn.Module:
    best = fit_best(
        network(),
        {name: method},
        *data["train"],
        steps=steps,
        batch_size=BATCH,
        learning_rate=RATE,
        seed=seed,
        validation=Validation(GOAL, *data["validation"]),
    )
    return best.fitted[best.name].model


def _judged(model: nn.Module, data: Any) -> dict[str, float]:
    """Points of recall at 1 % false alarms on the rows trained on and on the test part."""
    found = {}
    for part in ("train", "test"):
        x, y = data[part]
        try:
            found[part] = 100 * (1 - float(GOAL.evaluate(score(model, x).numpy(), y.numpy())))
        except Infeasible:
            found[part] = 0.0
    return found


def run(chosen: Any, rows: Rows) -> None:
    """All cells that have no row, every set before the next split."""
    cells = [
        {"data": data, "seed": seed, "setting": name}
        for seed in range(1 if chosen.quick else chosen.seeds)
        for data in (DATA[:1] if chosen.quick else DATA)
        for name in SETTINGS
    ]
    for cell in results.pending(cells, rows.done, chosen.minutes):
        seed, setting = cell["seed"], SETTINGS[cell["setting"]]
        parts = tabular.parts(cell["data"], seed)
        parts = parts._replace(train=thinned(parts.train, setting, seed))
        rows.add(cell, methods=trained(parts, setting, seed, 40 if chosen.quick else STEPS))


def text(rows: list[dict[str, Any]]) -> str:
    """Cross-entropy in points, and what the others gain on it on the same splits."""
    if not rows:
        return "No rows yet."
    others = [name for name in (*TRAINED, RETRAINED) if name != PLAIN]
    lines = []
    for setting in SETTINGS:
        pooled: dict[str, list[float]] = {name: [] for name in others}
        for data in DATA:
            mine = [
                r["methods"]
                for r in rows
                if (r["cell"]["setting"], r["cell"]["data"]) == (setting, data)
            ]
            if not mine:
                continue
            plain = [m[PLAIN]["test"] for m in mine]
            fitted = np.mean([m[PLAIN]["train"] for m in mine])
            gains = {n: [m[n]["test"] - m[PLAIN]["test"] for m in mine] for n in others}
            for name, values in gains.items():
                pooled[name] += values
            shown = [gain(values) for values in gains.values()]
            lines.append([setting, data, f"{fitted:.1f}", spread(plain), *shown])
        if any(pooled.values()):
            lines.append([f"**{setting}**", "all", "", "", *map(gain, pooled.values())])
    head = [
        "training rows",
        "data",
        "its recall in training",
        PLAIN,
        *(f"{n}, minus" for n in others),
    ]
    return table(head, lines)


def main() -> None:
    made = options(__doc__)
    made.add_argument("--seeds", type=int, default=5)
    chosen = made.parse_args()
    finish(chosen, "last_layer", run, text)


if __name__ == "__main__":
    main()
