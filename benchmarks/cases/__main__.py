"""Six uses that people recognise: ours, logistic regression and LightGBM, all with a certificate.

    python -m benchmarks cases --quick          # one split of two cases, to a scratch file
    python -m benchmarks cases [--case NAME]    # three splits of each
    python -m benchmarks cases --docs           # tables and pictures into docs/cases

Every model is trained on the same half of the rows; one `certify` proves the threshold of each on
the same fifth; the rest judges.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lightgbm
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.cases import page
from benchmarks.cases.data import CASES, Case, Rows
from benchmarks.common import results
from benchmarks.common.scratch import scratch
from setpoint import Classifier, certify

RESULTS = results.RESULTS / "cases.jsonl"
Score = Callable[[Any], Any]


def main() -> None:
    options = results.parser(__doc__, "table", "docs", "fresh", "out", quick="two cases", seeds=3)
    options.add_argument("--case", choices=CASES, action="append", help="default: all")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    looks = chosen.table or chosen.docs
    out = chosen.out or (scratch("cases") if chosen.quick and not looks else RESULTS)
    if chosen.fresh:
        out.unlink(missing_ok=True)
    names = chosen.case or (["moderation", "guardrail"] if chosen.quick else list(CASES))
    if not looks:
        for seed in range(1 if chosen.quick else chosen.seeds):
            for name in names:
                done = {
                    r["model"] for r in results.read(out) if (r["case"], r["seed"]) == (name, seed)
                }
                missing = [model for model in MODELS if model not in done]
                if missing:
                    found = run(name, seed, missing)
                    results.append(out, *found, packages=["lightgbm", "scikit-learn"])
    if chosen.docs:
        page.write(results.read(out))
    for name in names:
        print(page.table(name, results.read(out)))


def run(name: str, seed: int, models: Sequence[str]) -> Iterator[results.Row]:
    """One row for each model."""
    case = CASES[name]
    train, calibration, test = case.read(seed)
    for model in models:
        scores = MODELS[model](case, train, seed)
        certificate = certify(scores(calibration.x), calibration.y, case.goal)
        yield {"case": name, "seed": seed, "model": model} | judge(case, certificate, scores, test)


def judge(case: Case, certificate: Any, scores: Score, test: Rows) -> results.Row:
    """Rates on the test rows by the certified threshold; nothing is caught without one."""
    proved = certificate.status.startswith("certified")
    flagged = certificate.decide(scores(test.x)) > 0 if proved else np.zeros(len(test.y), bool)
    positive = test.y > 0
    row = {
        "status": certificate.status,
        "recall": float(flagged[positive].mean()),
        "fpr": float(flagged[~positive].mean()),
        "coverage": float(flagged.mean()),
        "precision": float(positive[flagged].mean()) if flagged.any() else None,
    }
    if test.amounts is not None:
        saved = float(test.amounts[flagged & positive].sum()) - case.review * float(flagged.sum())
        row["saved"] = 1000 * saved / len(test.y)
    if test.kind is not None:
        kinds, counts = np.unique(test.kind[positive], return_counts=True)
        for kind in kinds[np.argsort(-counts)][: page.KINDS]:
            row[f"recall of {kind}"] = float(flagged[positive & (test.kind == kind)].mean())
    return row


def _ours(kind: str) -> Callable[[Case, Rows, int], Score]:
    def fit(case: Case, rows: Rows, seed: int) -> Score:
        options = {"calibration_fraction": 0.0, "random_state": seed}
        return Classifier(case.goal, model=kind, **options).fit(rows.x, rows.y).decision_function

    return fit


def _logistic(_case: Case, rows: Rows, _seed: int) -> Score:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(rows.x, rows.y).decision_function


def _trees(_case: Case, rows: Rows, seed: int) -> Score:
    model = lightgbm.LGBMClassifier(random_state=seed, n_jobs=1, verbosity=-1).fit(rows.x, rows.y)
    return lambda x: model.booster_.predict(x, raw_score=True)


MODELS: dict[str, Callable[[Case, Rows, int], Score]] = {
    "setpoint, the default": _ours("auto"),
    "setpoint, linear": _ours("linear"),
    "setpoint, mlp": _ours("mlp"),
    "setpoint, boosted": _ours("boosted"),
    "logistic regression": _logistic,
    "LightGBM": _trees,
}


if __name__ == "__main__":
    main()
