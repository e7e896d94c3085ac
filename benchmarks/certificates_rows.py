"""Do certificates keep their promise on rows as people have them: clusters, several values, costs?

    python -m benchmarks certificates_rows            # 2,000 draws a setting
    python -m benchmarks certificates_rows --quick    # 200

Every setting draws calibration rows from a law whose true rates are known, certifies, and counts
how often a promise (or any of the displayed values) is false. It may be 5 % and three standard
errors. For clusters three thresholds stand side by side: with ``clusters=``, from one row of each
cluster, and with clusters ignored. Results go to results/certificates_rows.json.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, pdtrc

from benchmarks.common import results
from setpoint import Problem, __version__, certify, label_plan
from setpoint.certificates import certify_shifts, certify_three_way
from setpoint.certificates.betting import upper_mean
from setpoint.certificates.regions import Evidence, upper_bound
from setpoint.certificates.sample import POSITIVES, Subset
from setpoint.rates import cost, coverage, fpr, kappa, mcc, npv, precision, recall

RESULTS = Path(__file__).parent / "results" / "certificates_rows.json"
DELTA = 0.05
SHIFT = 2.5
Random = np.random.Generator
Row = dict[str, Any]


def most(draws: int) -> float:
    """5 % and three standard errors."""
    return DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / draws)


def any_wrong(claims: Any, truth: Any) -> bool:
    """Whether any displayed value is on the wrong side of the truth."""
    pairs = zip(claims, truth, strict=True)
    return any(c.proved < t if "<=" in c.bound else c.proved > t for c, t in pairs)


def ten_classes(random: Random) -> bool:
    found, labels = np.linspace(0.8, 0.9, 10), np.repeat(np.arange(10), 60)
    right = random.random(600) < found[labels]
    decided = np.where(right, labels, (labels + 1) % 10)
    problem = Problem.parse("maximize accuracy subject to lowest(recall) >= 0.6")
    made = certify_shifts(np.eye(10)[decided], labels, problem, np.zeros(10), classes=range(10))
    return made.certified and any_wrong(made.claims, found)


def eight_groups(random: Random) -> bool:
    group, scores = np.repeat(np.arange(8), 150), random.normal(size=1200)
    thresholds = dict(enumerate(np.linspace(1.0, 1.6, 8).tolist()))
    made = certify(scores, np.zeros(1200), fpr <= 0.3, groups=group, thresholds=thresholds)
    return made.certified and any_wrong(made.claims, ndtr(-np.array([*thresholds.values()])))


def five_bounds(random: Random) -> bool:
    labels = random.random(800) < 0.2
    scores = random.normal(size=800) + SHIFT * labels
    tpr, false = ndtr(SHIFT - 1.5), ndtr(-1.5)
    alerts = 0.2 * tpr + 0.8 * false
    truth = (false, tpr, 0.2 * tpr / alerts, alerts, 0.8 * (1 - false) / (1 - alerts))
    goal = [fpr <= 0.2, recall >= 0.5, precision >= 0.3, coverage <= 0.5, npv >= 0.5]
    made = certify(scores, labels, goal, thresholds=1.5)
    return made.certified and any_wrong(made.claims, truth)


def displayed(draws: int) -> Iterator[Row]:
    """Any displayed value false."""
    for setting in (ten_classes, eight_groups, five_bounds):
        yield {"setting": setting.__name__, "broken": share(setting, draws)}


def share(setting: Callable[[Random], bool], draws: int) -> float:
    random = np.random.default_rng(0)
    return float(np.mean([setting(random) for _ in range(draws)]))


def clustered(random: Random, clusters: int, size: int, icc: float) -> tuple[Any, Any, Any]:
    """Gaussian rows with a part that a cluster shares; sizes from 1 to ``size``."""
    ids = np.repeat(np.arange(clusters), random.integers(1, size + 1, clusters))
    labels = (random.random(clusters) < 0.3)[ids]
    shared, own = random.normal(size=clusters)[ids], random.normal(size=len(ids))
    return math.sqrt(icc) * shared + math.sqrt(1 - icc) * own + SHIFT * labels, labels, ids


def clusters(draws: int) -> Iterator[Row]:
    """``fpr <= 0.05`` on rows of 400 clusters; true recall beside that of the best threshold."""
    for size in (1, 10, 100):
        for icc in (0.0, 0.3, 0.6, 0.9):
            random = np.random.default_rng(0)
            cuts: dict[str, list[float]] = {"clusters": [], "one row each": [], "ignored": []}
            for _ in range(draws if size < 100 else max(draws // 4, 1)):
                scores, labels, ids = clustered(random, 400, size, icc)
                first = np.unique(ids, return_index=True)[1]
                goal = fpr <= 0.05
                cuts["clusters"].append(certify(scores, labels, goal, clusters=ids).threshold)
                cuts["one row each"].append(certify(scores[first], labels[first], goal).threshold)
                cuts["ignored"].append(certify(scores, labels, goal).threshold)
            found: Row = {"setting": f"clusters of 1 to {size}", "icc": icc}
            found["draws"] = len(cuts["clusters"])
            for name, cut in cuts.items():
                bad = float(np.mean(ndtr(-np.array(cut)) > 0.05))
                found[name] = {"broken": bad, "recall": float(ndtr(SHIFT - np.array(cut)).mean())}
            yield found | {"broken": found["clusters"]["broken"]}


def costs(draws: int) -> Iterator[Row]:
    """Upper bounds of a mean cost: misses 0 to 500, false alarms 5; amounts that differ by row."""
    from setpoint.certificates import costs as room

    for n in (500, 5000):
        random = np.random.default_rng(0)
        wrong, bounds = [], []
        for _ in range(draws):
            labels = random.random(n) < 0.2
            scores = random.normal(size=n) + SHIFT * labels
            amounts = 500 * random.beta(1, 4, n)
            paid = room.row_costs(cost(miss=1, false_alarm=5), scores, labels, amounts, 1.0)
            bounds.append(upper_mean(paid, 500.0, DELTA))
            truth = 0.2 * ndtr(1 - SHIFT) * 100 + 0.8 * ndtr(-1.0) * 5
            wrong.append(bounds[-1] < truth)
        found: Row = {"setting": f"mean cost, fixed threshold, n = {n}", "true": float(truth)}
        yield found | {"broken": float(np.mean(wrong)), "bound": float(np.mean(bounds))}
    yield from certified_costs(max(draws // 20, 1))


def certified_costs(draws: int) -> Iterator[Row]:
    """``certify`` with amounts: recall and the mean cost at the threshold that it takes."""
    random, wrong, made = np.random.default_rng(0), [], 0
    goal = [recall >= 0.7, cost(miss=1, false_alarm=5) <= 8]
    for _ in range(draws):
        labels = random.random(3000) < 0.2
        scores = random.normal(size=3000) + SHIFT * labels
        amounts = 500 * random.beta(1, 4, 3000)
        found = certify(scores, labels, goal, amounts=amounts, largest_amount=500.0)
        made += found.certified
        if found.certified:
            at = found.threshold
            true = 0.2 * ndtr(at - SHIFT) * 100 + 0.8 * ndtr(-at) * 5
            wrong.append(ndtr(SHIFT - at) < 0.7 or true > 8)
    yield {
        "setting": "recall >= 0.7 and cost <= 8 with amounts",
        "draws": draws,
        "certified": made / draws,
        "broken": sum(wrong) / draws,
    }


def outputs(draws: int) -> Iterator[Row]:
    """50 outputs that share half of their noise: any of the promises broken."""
    names, shares = list(map(str, range(50))), np.geomspace(0.3, 0.02, 50)
    for goal, level in ((fpr <= 0.05, 0.05), (recall >= 0.8, 0.2)):
        random, wrong, made, kept = np.random.default_rng(0), 0, [], []
        for _ in range(max(draws // 4, 1)):
            labels = random.random((2000, 50)) < shares
            noise = math.sqrt(0.5) * (
                random.normal(size=(2000, 1)) + random.normal(size=(2000, 50))
            )
            found = certify(noise + SHIFT * labels, labels, goal, outputs=names)
            cut = np.array(list(found.thresholds.values()))
            bad = ndtr(-cut) if goal.expression == fpr else ndtr(cut - SHIFT)
            wrong += bool((bad > level).any())
            made.append(len(cut))
            kept.append(float((ndtr(SHIFT - cut) if goal.expression == fpr else ndtr(-cut)).mean()))
        row: Row = {"setting": f"{goal} for 50 outputs", "draws": len(made)}
        row |= {"broken": wrong / len(made), "outputs": float(np.mean(made))}
        yield row | {"other rate": float(np.mean(kept)), "oracle": _oracle(goal, level)}


def _oracle(goal: Any, level: float) -> float:
    """The other rate at the threshold that knows the law."""
    if goal.expression == fpr:
        return float(ndtr(SHIFT - ndtri(1 - level)))
    return float(ndtr(-(SHIFT + ndtri(level))))


def shifts(draws: int) -> Iterator[Row]:
    """``precision >= 0.5`` calibrated at 20 % positives, used at others, by scores to come."""
    for share_now in (0.05, 0.1, 0.4):
        random, wrong, made = np.random.default_rng(0), {"unlabelled": 0, "ignored": 0}, 0
        for _ in range(max(draws // 10, 1)):
            labels = random.random(5000) < 0.2
            scores = random.normal(size=5000) + SHIFT * labels
            now = random.normal(size=8000) + SHIFT * (random.random(8000) < share_now)
            for name, more in (("unlabelled", {"unlabelled": now}), ("ignored", {})):
                found = certify(scores, labels, precision >= 0.5, **more)
                if found.certified:
                    tp = share_now * ndtr(SHIFT - found.threshold)
                    wrong[name] += tp / (tp + (1 - share_now) * ndtr(-found.threshold)) < 0.5
                    made += name == "unlabelled"
        count = max(draws // 10, 1)
        row: Row = {"setting": f"precision >= 0.5 at {share_now:.0%} positives", "draws": count}
        yield row | {
            "broken": wrong["unlabelled"] / count,
            "ignored": wrong["ignored"] / count,
            "certified": made / count,
        }


def three_way(draws: int) -> Iterator[Row]:
    """Accept with precision, reject with npv: either promise broken."""
    random, wrong, reviews = np.random.default_rng(0), 0, []
    count = max(draws // 2, 1)
    for _ in range(count):
        labels = random.random(4000) < 0.2
        scores = random.normal(size=4000) + SHIFT * labels
        found = certify_three_way(scores, labels, precision >= 0.9, npv >= 0.97)
        if not found.certified:
            continue
        up, low = float(found.upper or 0.0), float(found.lower or 0.0)
        tp, fn = 0.2 * ndtr(SHIFT - up), 0.2 * ndtr(low - SHIFT)
        bad = tp / (tp + 0.8 * ndtr(-up)) < 0.9
        wrong += bool(bad or fn / (fn + 0.8 * ndtr(low)) > 0.03)
        reviews.append(found.reviews / 4000)
    row: Row = {"setting": "accept precision >= 0.9, reject npv >= 0.97", "draws": count}
    yield row | {
        "broken": wrong / count,
        "certified": len(reviews) / count,
        "reviews": float(np.mean(reviews)),
    }


LEVELS = np.arange(12)
BY_CLASS = {
    positive: np.diff(
        ndtr(np.append(np.append(-np.inf, LEVELS[1:] / 2 - 1.75), np.inf) - SHIFT * positive)
    )
    for positive in (False, True)
}
"""Gaussian scores rounded to 12 values: the share of each in either class."""


def lots(draws: int) -> Iterator[Row]:
    """``fpr <= 0.05`` on scores with 12 values, and with 3: ties rejected, and broken by lot."""
    for values in (12, 3):
        step = 12 // values
        law = {c: shares.reshape(values, step).sum(1) for c, shares in BY_CLASS.items()}
        random, wrong = np.random.default_rng(0), 0
        kept: dict[str, list[float]] = {"lot": [], "reject": []}
        for _ in range(draws):
            labels = random.random(1000) < 0.3
            drawn = {c: random.choice(values, 1000, p=p) for c, p in law.items()}
            scores = np.where(labels, drawn[True], drawn[False]).astype(float)
            for ties, given in (("lot", {"ties": "lot", "ids": np.arange(1000)}), ("reject", {})):
                found = certify(scores, labels, fpr <= 0.05, **given)
                lot, at = (found.lots or (1.0,))[0], found.threshold
                rates = {
                    c: p[np.arange(values) > at].sum()
                    + (1 - lot) * p[np.arange(values) == at].sum()
                    for c, p in law.items()
                }
                kept[ties].append(float(rates[True]))
                wrong += ties == "lot" and rates[False] > 0.05
        above = {c: np.append(np.cumsum(p[::-1])[::-1], 0.0) for c, p in law.items()}
        best = np.interp(0.05, above[False][::-1], above[True][::-1])
        row: Row = {"setting": f"fpr <= 0.05 with {values} distinct scores, ties by lot"}
        row |= {"draws": draws, "broken": wrong / draws, "recall": float(np.mean(kept["lot"]))}
        yield row | {"recall, ties rejected": float(np.mean(kept["reject"])), "oracle": float(best)}


def agreement(draws: int) -> Iterator[Row]:
    """Matthews' correlation and Cohen's kappa, 4 points below the best that there is."""
    for rate in (mcc, kappa):
        cuts = np.linspace(-1, 4, 4001)
        best = float(rate.at_shares(ndtr(SHIFT - cuts), ndtr(-cuts), 0.2).max())
        random, wrong, made = np.random.default_rng(0), 0, 0
        count = max(draws // 4, 1)
        for _ in range(count):
            labels = random.random(2000) < 0.2
            found = certify(random.normal(size=2000) + SHIFT * labels, labels, rate >= best - 0.04)
            made += found.certified
            if found.certified:
                at = found.threshold
                wrong += rate.at_shares(ndtr(SHIFT - at), ndtr(-at), 0.2) < best - 0.04
        row: Row = {"setting": f"{rate} >= best - 0.04, 2,000 rows", "draws": count}
        yield row | {"broken": wrong / count, "certified": made / count}


def plans(draws: int) -> Iterator[Row]:
    """``fpr <= 0.001`` at 1 % positives from 2,000 labels of 200,000 rows, placed by a plan."""
    random, wrong, kept, count = np.random.default_rng(0), 0, [], max(draws // 10, 1)
    for draw in range(count):
        positive = random.random(200_000) < 0.01
        scores = random.normal(size=200_000) + 4 * positive
        plan = label_plan(scores, fpr <= 0.001, budget=2000, seed=draw)
        labels = np.full(200_000, np.nan)
        labels[list(plan.rows)] = positive[list(plan.rows)]
        found = certify(scores, labels, fpr <= 0.001, plan=plan)
        kept.append(float(ndtr(4 - found.threshold)) if found.certified else 0.0)
        wrong += found.certified and ndtr(-found.threshold) > 0.001
    row: Row = {"setting": "fpr <= 0.001, 2,000 labels of 200,000 rows by plan", "draws": count}
    row |= {"broken": wrong / count, "recall": float(np.mean(kept))}
    yield row | {"oracle": float(ndtr(4 - ndtri(0.999)))}


def capacity(draws: int) -> Iterator[Row]:
    """``alerts <= 6 per day on 90 % of days``: 120 days whose scores shift from day to day."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    random, wrong = np.random.default_rng(0), 0
    for _ in range(draws):
        day = np.repeat(np.arange(120), random.poisson(60, 120))
        scores = random.normal(size=len(day)) + 0.3 * random.normal(size=120)[day]
        goal = "alerts <= 6 per day on 90 % of days"
        at = certify(scores, None, goal, times=day.astype(float), accept_drift=True).threshold
        mean = 60 * ndtr(0.3 * nodes - at)
        wrong += float(weights @ pdtrc(6, mean) / weights.sum()) > 0.1
    yield {
        "setting": "alerts <= 6 per day on 90 % of days",
        "draws": draws,
        "broken": wrong / draws,
    }


def power(draws: int) -> Iterator[Row]:
    """How often two groups of ``n`` positives prove a gap of recalls that are both 90 %."""
    sides = [Subset((("g", name),), POSITIVES) for name in "ab"]
    gap = recall.on(g="a") - recall.on(g="b")
    for level, n in ((0.02, 5400), (0.05, 900), (0.1, 250)):
        random, proved = np.random.default_rng(0), 0
        for _ in range(draws):
            counts = random.binomial(n, 0.9, 2).tolist()
            known = {s: Evidence(k, k, n, 1) for s, k in zip(sides, counts, strict=True)}
            most_of = [upper_bound(side, known, DELTA, None) for side in (gap, -gap)]
            proved += max(most_of) <= level
        yield {"setting": f"gap <= {level}, {n} positives each", "proved": proved / draws}


PARTS = (
    *(displayed, clusters, costs, outputs, shifts, three_way, lots, agreement, plans, capacity),
    power,
)


def main() -> None:
    parser = results.parser(__doc__, quick="a look")
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS])
    given = parser.parse_args()
    draws = 200 if given.quick else 2000
    book = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    book |= {"setpoint": __version__, "numpy": np.__version__, "python": platform.python_version()}
    bad = 0
    for part in PARTS:
        if given.only not in (None, part.__name__):
            continue
        rows = []
        for row in part(draws):
            rows.append({"draws": draws} | row)
            bad += row.get("broken", 0.0) > most(rows[-1]["draws"])
            print(json.dumps(rows[-1]), flush=True)
        book["rows"][part.__name__] = rows
    if not given.quick:
        results.write_document(RESULTS, book)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
