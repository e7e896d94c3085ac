"""Which cells are run, stage by stage; each stage is bounded and can be run alone."""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.common.tabular import NAMES
from benchmarks.points.goals import GOALS
from benchmarks.points.judging import Cell
from benchmarks.points.methods import RUNS
from benchmarks.points.pictures import GOALS_OF_IMAGES, TASKS

STEPS = {512: 1000, 64: 2500, 0: 500}
PUBLISHED_SEEDS = 2  # the paper's grid is nine times the work
SIDE = ("letter", "ijcnn1", "spambase")  # where effects are larger than the noise
SIDE_GOALS = ("fnr1", "pr95", "pauc")
TRAINED = [name for name in RUNS if name != "as published"]


class Job(NamedTuple):
    """One cell, and what is trained in it."""

    cell: Cell
    goals: list[str]
    runs: list[str]


def main(seeds: int) -> Iterator[Job]:
    """Every table, linear and MLP, all goals; Adam, batches of 512 (heart 64)."""
    for seed in range(seeds):
        for data in NAMES:
            for model in ("linear", "mlp"):
                cell = Cell(data, model, batch=64 if data == "heart" else 512, seed=seed)
                runs = list(RUNS) if seed < PUBLISHED_SEEDS else TRAINED
                yield Job(cell, list(GOALS), runs)


def side(seeds: int) -> Iterator[Job]:
    """One thing changed at a time: optimizer, batch, start."""
    changes = ({"optimizer": "sgd"}, {"batch": 64}, {"batch": 0}, {"zero_head": True})
    for seed in range(seeds):
        for data in SIDE:
            for model in ("linear", "mlp"):
                for change in changes:
                    yield Job(Cell(data, model, seed=seed, **change), list(SIDE_GOALS), TRAINED)


def pictures(seeds: int, model: str) -> Iterator[Job]:
    """Faces and objects, one network a run."""
    for seed in range(seeds):
        for data, columns in TASKS.items():
            for column in columns:
                cell = Cell(f"{data}/{column}", model, batch=256, seed=seed)
                yield Job(cell, list(GOALS_OF_IMAGES), TRAINED)


STAGES = {
    "main": main,
    "side": side,
    "cnn": lambda seeds: pictures(seeds, "cnn"),
    "cnn-tiny": lambda seeds: pictures(seeds, "cnn-tiny"),
}
SEEDS = {"main": 5, "side": 3, "cnn": 3, "cnn-tiny": 3}
