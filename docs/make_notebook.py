"""The notebook examples/fraud.ipynb: ``python -m docs.make_notebook`` runs and writes it.

The site shows it as a page, with what the cells printed (docs/hooks.py).
"""

import contextlib
import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

from setpoint.certificates import text as certificate_text

FILE = Path(__file__).parents[1] / "examples" / "fraud.ipynb"
CELLS = (
    """# A threshold for fraud: tuned, MAPIE, certified

LightGBM scores payments; at most 1 % of honest payments may be stopped. Three ways to choose the
threshold on the same calibration rows, and what each does on new rows. Needs
`pip install ".[boosting,sklearn]" "mapie>=1.6"`; without MAPIE its cell is left out.""",
    """import numpy as np
from lightgbm import LGBMClassifier

random = np.random.default_rng(0)

def payments(rows):
    fraud = (random.random(rows) < 0.05).astype(int)
    amount = random.lognormal(3 + 0.8 * fraud, 1)
    hour = (random.normal(14 - 6 * fraud, 5) % 24).round()
    new_device = random.random(rows) < 0.1 + 0.5 * fraud
    return np.column_stack([np.log(amount), hour, new_device, random.normal(size=rows)]), fraud

x_train, y_train = payments(20_000)
x_cal, y_cal = payments(4_000)
x_new, y_new = payments(200_000)
model = LGBMClassifier(n_estimators=60, num_leaves=8, verbose=-1, random_state=0)
model.fit(x_train, y_train)
scores, new_scores = (model.predict(x, raw_score=True) for x in (x_cal, x_new))""",
    """## The usual way: the lowest threshold with 1 % false alarms on the calibration rows""",
    """BOUND = 0.01

def report(name, threshold):
    alerts = new_scores > threshold
    fpr, recall = alerts[y_new == 0].mean(), alerts[y_new == 1].mean()
    print(f"{name:10} threshold {threshold:6.2f}  new rows: fpr {fpr:.2%}, recall {recall:.1%}")
    return fpr

tuned = np.quantile(scores[y_cal == 0], 1 - BOUND)
found = {"tuned": report("tuned", tuned)}""",
    """## MAPIE, if it is installed""",
    """try:
    from mapie.risk_control import BinaryClassificationController, false_positive_rate
except ImportError:
    print("pip install mapie")
else:
    controller = BinaryClassificationController(
        model.predict_proba, false_positive_rate, target_level=BOUND, confidence_level=0.95
    ).calibrate(x_cal, y_cal)
    best = controller.best_predict_param
    found["MAPIE"] = report("MAPIE", np.log(best / (1 - best)))""",
    """## `certify`: exact, for every threshold, without a grid""",
    """from setpoint import certify

certificate = certify(scores, y_cal, "fpr <= 1 %", confidence=0.95)
found["certified"] = report("certified", certificate.threshold)
print(certificate)""",
    """## One sample proves little: the same on 300 calibration samples

The model stays; only the calibration rows are drawn again.
How often is the true rate above 1 %?""",
    """broken = {"tuned": 0, "certified": 0}
negatives, positives = new_scores[y_new == 0], new_scores[y_new == 1]
for _ in range(300):
    some = np.concatenate([random.choice(negatives, 3_800), random.choice(positives, 200)])
    some += 1e-9 * random.normal(size=4_000)     # drawn with replacement: no exact copies
    labels = np.arange(4_000) >= 3_800
    thresholds = {
        "tuned": np.quantile(some[:3_800], 1 - BOUND),
        "certified": certify(some, labels, "fpr <= 1 %").threshold,
    }
    for name, threshold in thresholds.items():
        broken[name] += (negatives > threshold).mean() > BOUND
for name, count in broken.items():
    print(f"{name}: {count / 300:.0%} of samples break the bound")""",
)


def is_code(text: str) -> bool:
    """Prose begins with a heading; everything else is code."""
    return not text.startswith("#")


def run() -> tuple[list[str], dict[str, Any]]:
    """What each cell prints, in lines that fit a phone, and the names that they make."""
    names: dict[str, Any] = {}
    printed = []
    for text in CELLS:
        narrow = patch.object(certificate_text, "_TEXT_WIDTH", 62)
        with narrow, contextlib.redirect_stdout(io.StringIO()) as shown:
            if is_code(text):
                exec(text, names)
        printed.append(shown.getvalue())
    return printed, names


def notebook(printed: list[str]) -> str:
    """The file."""
    cells: list[dict[str, Any]] = []
    for text, shown in zip(CELLS, printed, strict=True):
        one = {"id": f"cell-{len(cells)}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if is_code(text):
            lines = shown.splitlines(keepends=True)
            output = {"name": "stdout", "output_type": "stream", "text": lines}
            cells.append({**one, "cell_type": "code", "execution_count": None})
            cells[-1]["outputs"] = [output] if lines else []
        else:
            cells.append({**one, "cell_type": "markdown"})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1) + "\n"


def committed() -> list[str]:
    """What each cell of the file printed when it was made."""
    cells = json.loads(FILE.read_text(encoding="utf-8"))["cells"]
    return ["".join(line for one in c.get("outputs", ()) for line in one["text"]) for c in cells]


def page() -> str:
    """The notebook as a page of the site."""
    parts = []
    for text, shown in zip(CELLS, committed(), strict=True):
        parts.append(f"```python\n{text}\n```" if is_code(text) else text)
        parts += [f"```text\n{shown}```"] * bool(shown)
    parts.append(
        "This page is `examples/fraud.ipynb`; `python -m docs.make_notebook` runs it again."
    )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    FILE.write_text(notebook(run()[0]), encoding="utf-8")
