"""Train on Letter, certify a threshold, write the report page: under a minute.

    python examples/report_page.py [report.html]

Half of the data trains, an eighth chooses, and the rest is shared by certificate and final test.
"""

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from platform import python_version

import numpy as np
import torch
from torch import nn

import setpoint
from setpoint import Implicit, Problem
from setpoint.certificates import certify
from setpoint.datasets import letter
from setpoint.reports import page
from setpoint.results import RunResult
from setpoint.solvers import cross_entropy
from setpoint.train import fit

GOAL = Problem.parse("maximize recall subject to fpr <= 0.01")
SEED, STEPS, EVERY = 0, 800, 20
SHARES = {"train": 0.5, "validation": 0.125, "calibration": 0.1875, "test": 0.1875}


def main(path: Path) -> None:
    x, y = letter("U")
    order = np.random.default_rng(SEED).permutation(len(y))
    ends = np.cumsum([round(share * len(y)) for share in SHARES.values()])[:-1]
    rows = dict(zip(SHARES, np.split(order, ends), strict=True))
    train = x[rows["train"]]
    x = torch.from_numpy((x - train.mean(0)) / train.std(0))

    history: list[dict[str, float]] = []
    ours = trained(Implicit(GOAL, steps=STEPS), x, y, rows, history)
    usual = trained(cross_entropy, x, y, rows, [])
    scores, labels = ours["calibration"], y[rows["calibration"]]
    certificate = certify(scores, labels, GOAL, confidence=0.95)

    run = RunResult(
        goal=str(GOAL),
        splits={part: (ours[part], y[rows[part]], groups(x, rows[part])) for part in SHARES},
        threshold=certificate.threshold if certificate.certified else None,
        certificate=json.loads(certificate.to_json()),
        label="letter",
        positive="U",
        method="Implicit",
        model="linear",
        seed=SEED,
        versions=versions(),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        history=history,
        baseline={part: (usual[part], y[rows[part]]) for part in SHARES},
        columns=[f"feature {i + 1}" for i in range(x.shape[1])],
        group="width of the box",
        notes=["All columns were given mean 0 and deviation 1 by what the training part shows."],
    )
    path.write_text(page(run), encoding="utf-8")
    print(certificate)
    print(f"The report is in {path}.")


def trained(criterion, x, y, rows, history) -> dict[str, np.ndarray]:
    """Train one linear model; the scores of every part."""
    torch.manual_seed(SEED)
    model = nn.Linear(16, 1)
    validation = x[rows["validation"]], y[rows["validation"]]

    def note(step: int, loss: torch.Tensor) -> None:
        if step % EVERY == EVERY - 1:
            recall = GOAL.evaluate(model(validation[0]).detach(), validation[1])
            noted = {"step": step + 1, "loss": float(loss), "recall on validation": recall}
            history.append(noted)

    options = {"steps": STEPS, "batch_size": 512, "learning_rate": 0.01, "seed": SEED}
    features, labels = x[rows["train"]], torch.from_numpy(y[rows["train"]])
    fitted = fit(model, criterion, features, labels, on_step=note, **options)
    with torch.no_grad():
        return {part: fitted.model(x[rows[part]]).squeeze(-1).numpy() for part in rows}


def groups(x: torch.Tensor, rows: np.ndarray) -> np.ndarray:
    """Narrow and wide letters, by the width of the box around them."""
    return np.where(x[rows, 2].numpy() > 0, "wide", "narrow")


def versions() -> dict[str, str]:
    modules = {"setpoint": setpoint, "torch": torch, "numpy": np}
    return {"python": python_version(), **{name: m.__version__ for name, m in modules.items()}}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "report.html"))
