"""Direct metric optimisation (Peng et al. 2025) beside the study's methods: precision at recall.

    python -m benchmarks study.dmo --quick        # two minutes, to a scratch file
    python -m benchmarks study.dmo --minutes 40   # goes on where the last run stopped
    python -m benchmarks study.dmo --docs         # the table into docs/study.md

Their "fix recall, optimise precision", written anew after the paper and its published code. Every
training row has a variable in [0, 1] that stands for its decision, tied to the score by exact
penalties of both kinds of violation; precision and recall are those of the variables. Start,
penalties and their growth are the authors'; all rows are one batch, in 20 rounds of 100 steps after
a start by cross-entropy (the authors: 50 of 1,000). Rate and round are picked on validation, as for
the other methods, whose rows are read from study.jsonl.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from benchmarks.common import results
from benchmarks.common.pages import fill
from benchmarks.common.scratch import scratch
from benchmarks.study import __main__ as study
from benchmarks.study import tables
from benchmarks.study.methods import OURS, PLAIN, RATES
from benchmarks.study.metrics import RECALL, TITLES, metrics
from benchmarks.study.report import PAGE
from setpoint.datasets import DataSplit

RESULTS = results.RESULTS / "study_dmo.jsonl"
NAME, GOAL = "dmo", "pr95"
ROUNDS, STEPS, WARM = 20, 100, 500
VARIABLE_RATE, GROWTH, SMALL = 0.1, 1.3, 1e-5
WIDTHS = (0, 8)
BY_SIZE = (
    "annthyroid", "webpage_phishing", "drebin215", "unsw_nb15_82k", "weather_aus",
    "give_me_some_credit", "fraud_handbook_sim", "fashion_mnist", "brfss_diabetes",
)  # fmt: skip


class Penalties(NamedTuple):
    """Weights of the recall's violation, of the tie to the scores, and of the confidence."""

    recall: float = 100.0
    tie: float = 100.0
    confidence: float = 0.5

    def grown(self, recall: float, tie: float) -> "Penalties":
        """Those of the next round, by what is still violated."""
        return Penalties(
            self.recall * (GROWTH if recall > SMALL else 1),
            self.tie * (GROWTH if tie > SMALL else 1 / GROWTH),
            self.confidence * GROWTH,
        )


def violations(scores: Tensor, decided: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What is missing of the recall, and the mean gap between variables and true decisions.

    A variable of a negative may not be less than its decision, one of a positive not more; each
    class weighs as much as the other has rows.
    """
    margin = scores.sigmoid() - 0.5
    gap = (decided + margin - 1).clamp(min=0) - torch.maximum(-decided, margin)
    share = y.mean()
    tie = torch.where(y > 0, (1 - share) * gap.clamp(min=0), share * (-gap).clamp(min=0))
    recall = (decided * y).sum() / y.sum()
    return (RECALL - recall).clamp(min=0), tie.mean()


def objective(scores: Tensor, decided: Tensor, y: Tensor, weights: Penalties) -> Tensor:
    """Minus the precision of the variables, with all penalties."""
    recall, tie = violations(scores, decided, y)
    precision = (decided * y).sum() / decided.sum().clamp(min=SMALL)
    confidence = cross_entropy(scores, decided)
    return (
        -precision + weights.recall * recall + weights.tie * tie + weights.confidence * confidence
    )


def train(parts: DataSplit, hidden: int, seed: int, quick: bool) -> results.Row:
    """The rate and round that validation prefers, and its test value."""
    best: results.Row = {"validation": -1.0}
    for rate in RATES[hidden == 0]:
        for place, model in enumerate(rounds(parts, hidden, seed, rate, 2 if quick else ROUNDS)):
            with torch.no_grad():
                found = metrics(_scores(model, parts.validation.x), parts.validation.y)[GOAL]
                if found > best["validation"]:
                    test = metrics(_scores(model, parts.test.x), parts.test.y)[GOAL]
                    best = {"rate": rate, "step": place, "validation": round(found, 4)}
                    best["test"] = round(test, 4)
    return best


def rounds(parts: DataSplit, hidden: int, seed: int, rate: float, count: int):
    """The model after its start and after every round."""
    x, y = torch.as_tensor(parts.train.x), torch.as_tensor(parts.train.y).float()
    torch.manual_seed(seed)
    layers = [nn.Linear(x.shape[1], hidden), nn.ReLU()] if hidden else []
    model = nn.Sequential(*layers, nn.Linear(hidden or x.shape[1], 1), nn.Flatten(0))
    _minimize(torch.optim.Adam(model.parameters(), rate), lambda: cross_entropy(model(x), y), WARM)
    yield model
    decided = torch.rand(len(y), requires_grad=True)
    weights = Penalties()
    for _ in range(count):
        groups = [{"params": model.parameters()}, {"params": [decided], "lr": VARIABLE_RATE}]

        def loss(weights: Penalties = weights) -> Tensor:
            return objective(model(x), decided, y, weights)

        _minimize(torch.optim.Adam(groups, rate), loss, STEPS, decided)
        yield model
        with torch.no_grad():
            weights = weights.grown(*map(float, violations(model(x), decided, y)))


def _minimize(optimizer, loss, steps: int, inside: Tensor | None = None) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        if inside is not None:
            inside.data.clamp_(0, 1)


def _scores(model: nn.Module, x: np.ndarray) -> np.ndarray:
    return model(torch.as_tensor(x)).numpy()


def run(out: Path, quick: bool, minutes: float) -> None:
    """Every table that has no row, small ones first, until the time is up."""
    names = BY_SIZE[:1] if quick else BY_SIZE
    cells = [study.Cell(name, fold, hidden, 0.0)
             for fold in (0, 1) for hidden in WIDTHS for name in names]  # fmt: skip

    def done(cell: study.Cell) -> bool:
        return any(study.same(row, cell) for row in results.read(out))

    for cell in results.pending(cells[:2] if quick else cells, done, minutes):
        parts, _ = tables.fold(cell.data, cell.fold)
        found = train(parts, cell.hidden, cell.fold, quick)
        results.append(out, cell._asdict() | {"goal": GOAL, "method": NAME} | found)
        print(*cell, found["test"], flush=True)


def text(rows: list[results.Row], others: list[results.Row]) -> str:
    """Per table and model the mean test value over folds, beside three methods of the study."""
    head = [TITLES[GOAL], "model", "folds", NAME, PLAIN, "resampled", "`Implicit`"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    places = list(dict.fromkeys((row["data"], row["hidden"]) for row in rows))
    for data, hidden in sorted(places, key=lambda place: (place[1], tables.NAMES.index(place[0]))):
        mine = {r["fold"]: r["test"] for r in rows if (r["data"], r["hidden"]) == (data, hidden)}
        shown = [np.mean(list(mine.values()))]
        for name in (PLAIN, "resampled", OURS):
            cells = [study.Cell(data, fold, hidden, 0.0) for fold in mine]
            shown.append(np.mean([
                r["test"] for r in others for cell in cells
                if r["method"] == name and r["goal"] == GOAL and study.same(r, cell)
            ]))  # fmt: skip
        model = f"{hidden} units" if hidden else "linear"
        cells = " | ".join(f"{value:.1f}" for value in shown)
        lines.append(f"| {data} | {model} | {len(mine)} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    chosen = results.parser(
        __doc__, "table", "docs", "out", quick="one small table", minutes=40.0
    ).parse_args()
    torch.set_num_threads(1)
    out = chosen.out or (scratch("study_dmo") if chosen.quick else RESULTS)
    if not (chosen.table or chosen.docs):
        run(out, chosen.quick, chosen.minutes)
    found = text(results.read(out), results.read(study.RESULTS))
    if chosen.docs:
        fill(PAGE, "dmo", found)
    print(found)


if __name__ == "__main__":
    main()
