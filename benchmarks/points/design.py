"""Which cells are run, stage by stage; each stage is bounded and can be run alone."""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.common.tabular import NAMES
from benchmarks.points.goals import GOALS
from benchmarks.points.ideas import IDEAS
from benchmarks.points.judging import Cell
from benchmarks.points.methods import FIRST, FOCAL, VARIANTS
from benchmarks.points.pictures import GOALS_OF_IMAGES, TASKS

STEPS = {512: 1000, 64: 2500, 0: 1000}
SIDE = ("letter", "ijcnn1", "spambase")  # where effects are larger than the noise
SIDE_GOALS = ("fnr1", "pr95", "pauc")
TRAINED = ["cross-entropy", "weighted", "focal", "resampled", "default"]
SCREENED = ["cross-entropy", "focal", FIRST, *VARIANTS]
IDEAS_ON = ("letter", "ijcnn1", "adult")
HEAD = "head trained again"  # of a network: a linear model is all head
PAPER = ("letter", "ijcnn1", "spambase", "crime145", "adult122")  # its Table 5, with its columns
SCREENING = range(100, 200)  # seeds of their own: the default is chosen on other splits


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
                yield Job(cell, list(GOALS), TRAINED)


def published(seeds: int) -> Iterator[Job]:
    """The paper's grid in the cells of the main stage: nine times the work of the default."""
    for job in main(seeds):
        yield job._replace(runs=["paper's grid"])


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


def screen(seeds: int) -> Iterator[Job]:
    """Variants of the default, on splits that no other stage uses."""
    for seed in SCREENING[:seeds]:
        for data in (*SIDE, "adult"):
            for model in ("linear", "mlp"):
                yield Job(Cell(data, model, seed=seed), list(SIDE_GOALS), SCREENED)


def screen_pictures(seeds: int) -> Iterator[Job]:
    """The same for networks on images."""
    for job in pictures(seeds, "cnn"):
        cell = job.cell._replace(seed=SCREENING[job.cell.seed])
        yield Job(cell, ["fnr1"], SCREENED)


def choice(seeds: int) -> Iterator[Job]:
    """Which main loss the default fades out of, on splits that no other stage uses."""
    both = ["default", FOCAL]
    for seed in SCREENING[70 : 70 + seeds]:
        for data in (*SIDE, "adult"):
            yield Job(Cell(data, "mlp", seed=seed), list(SIDE_GOALS), both)
    for task in ("cifar10/automobile", "cifar10/horse", "celeba/Smiling"):
        yield Job(Cell(task, "cnn", batch=256, seed=150), ["fnr1", "pauc"], both)


def ideas(seeds: int) -> Iterator[Job]:
    """Ideas beside the default, on splits that no other stage uses."""
    for seed in SCREENING[80 : 80 + seeds]:
        for data in IDEAS_ON:
            for model in ("linear", "mlp"):
                tried = [name for name in IDEAS if model == "mlp" or name != HEAD]
                yield Job(Cell(data, model, seed=seed), list(SIDE_GOALS), ["default", *tried])


STAGES = {
    "main": main,
    "cnn": lambda seeds: pictures(seeds, "cnn"),
    "side": side,
    "published": published,
    "cnn-tiny": lambda seeds: pictures(seeds, "cnn-tiny"),
    "screen": screen,
    "screen-cnn": screen_pictures,
    "choice": choice,
    "ideas": ideas,
}
"""The table first: what the default was chosen by comes after it."""
SEEDS = {
    "screen": 2,
    "screen-cnn": 1,
    "choice": 3,
    "ideas": 3,
    "main": 5,
    "published": 3,
    "side": 3,
    "cnn": 3,
    "cnn-tiny": 3,
}
