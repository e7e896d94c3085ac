"""Do certificates keep their promise on rows as people have them: clusters, several values, costs?

    python -m benchmarks certificates_rows                  # 2,000 draws each
    python -m benchmarks certificates_rows --quick          # 100 draws, nothing is written
    python -m benchmarks certificates_rows --only clusters  # one part
    python -m benchmarks certificates_rows --mapie          # MAPIE, where it has the goal
    python -m benchmarks certificates_rows --docs           # the tables of docs/certificates.md

Every setting draws calibration rows from a law whose true rates are known, certifies, and counts
how often the promise is false. It may be 5 % and three standard errors. Settings that are in
results/certificates_rows.jsonl with so many draws are not run again.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri, pdtrc

from benchmarks.common import results
from benchmarks.common.pages import fill
from setpoint import Problem, certify, label_plan
from setpoint.certificates import certify_shifts, certify_three_way
from setpoint.certificates.betting import upper_mean
from setpoint.certificates.regions import CountEvidence, upper_bound
from setpoint.certificates.sample import POSITIVES, Subset
from setpoint.rates import cost, coverage, fpr, kappa, mcc, npv, precision, recall

RESULTS = Path(__file__).parent / "results" / "certificates_rows.jsonl"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "certificates.md"
DELTA, SHIFT, DRAWS = 0.05, 2.5, 2000
Random = np.random.Generator
Values = dict[str, float]
Draw = Callable[[Random], Values]


@dataclass(frozen=True)
class Setting:
    """One law with one promise.

    Attributes:
        part: What kind of setting it is.
        name: The promise, and what rows it is made on.
        draw: Certifies one calibration sample. What it returns is averaged over draws: ``broken``
            is 1 if the promise was made and is false, ``kept`` what the decisions are worth.
        best: The largest ``kept`` (the smallest, if ``kept`` is a cost) that a threshold which
            knows the law has.
        mapie: The same with MAPIE, or None if it has no such goal.
        mapie_draws: How many draws MAPIE gets, which is slower.
    """

    part: str
    name: str
    draw: Draw
    best: float | None = None
    mapie: Draw | None = None
    mapie_draws: int = 200


def most(draws: int) -> float:
    """5 % and three standard errors."""
    return DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / draws)


def gaussian(random: Random, n: int, share: Any, shift: float = SHIFT) -> tuple[Any, Any]:
    """Scores and labels of ``n`` independent rows."""
    labels = random.random(n) < share
    return random.normal(size=n) + shift * labels, labels


def precision_at(threshold: Any, share: float, shift: float = SHIFT) -> Any:
    """The true precision of a threshold."""
    tp = share * ndtr(shift - threshold)
    return tp / (tp + (1 - share) * ndtr(-threshold))


def mapie_threshold(scores: Any, labels: Any, share: float, *goal: Any, level: float) -> float:
    """MAPIE's threshold by fixed-sequence testing of 1,000 thresholds; NaN if it has none."""
    from mapie.risk_control import BinaryClassificationController

    odds = math.log(share / (1 - share)) - SHIFT**2 / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = BinaryClassificationController(
            lambda x: np.stack([1 - x[:, 0], x[:, 0]], 1),
            *goal,
            confidence_level=level,
            list_predict_params=np.linspace(0, 1, 1001)[1:-1],
            fwer_method="fixed_sequence",
        ).calibrate(expit(SHIFT * scores + odds)[:, None], labels.astype(int))
    chosen = found.best_predict_param
    return math.nan if chosen is None else (math.log(chosen / (1 - chosen)) - odds) / SHIFT


# --- displayed values ----------------------------------------------------------------------------


def any_wrong(made: Any, truth: Any) -> Values:
    """Whether any displayed value is on the wrong side of the truth."""
    if not made.certified:
        return {"broken": 0.0, "certified": 0.0}
    pairs = zip(made.claims, truth, strict=True)
    wrong = any(c.proved < t if "<=" in c.bound else c.proved > t for c, t in pairs)
    return {"broken": float(wrong), "certified": 1.0}


def ten_classes(random: Random) -> Values:
    found, labels = np.linspace(0.8, 0.9, 10), np.repeat(np.arange(10), 60)
    right = random.random(600) < found[labels]
    decided = np.where(right, labels, (labels + 1) % 10)
    problem = Problem.parse("maximize accuracy subject to lowest(recall) >= 0.6")
    made = certify_shifts(np.eye(10)[decided], labels, problem, np.zeros(10), classes=range(10))
    return any_wrong(made, found)


def eight_groups(random: Random) -> Values:
    group, scores = np.repeat(np.arange(8), 150), random.normal(size=1200)
    thresholds = dict(enumerate(np.linspace(1.0, 1.6, 8).tolist()))
    made = certify(scores, np.zeros(1200), fpr <= 0.3, groups=group, thresholds=thresholds)
    return any_wrong(made, ndtr(-np.array([*thresholds.values()])))


def five_bounds(random: Random) -> Values:
    tpr, false = ndtr(SHIFT - 1.5), ndtr(-1.5)
    alerts = 0.2 * tpr + 0.8 * false
    truth = (false, tpr, 0.2 * tpr / alerts, alerts, 0.8 * (1 - false) / (1 - alerts))
    goal = [fpr <= 0.2, recall >= 0.5, precision >= 0.3, coverage <= 0.5, npv >= 0.5]
    return any_wrong(certify(*gaussian(random, 800, 0.2), goal, thresholds=1.5), truth)


DISPLAYED = [
    Setting("displayed", "any displayed value, 10 classes", ten_classes),
    Setting("displayed", "any displayed value, 8 groups", eight_groups),
    Setting("displayed", "any displayed value, 5 bounds", five_bounds),
]


# --- clusters ------------------------------------------------------------------------------------


def of_clusters(random: Random, size: int, icc: float, informative: bool) -> tuple[Any, Any, Any]:
    """400 clusters that share a part of their scores; large ones have high scores if they tell."""
    shared = random.normal(size=400)
    sizes = random.integers(1, size + 1, 400)
    if informative:
        sizes = 1 + np.round((size - 1) * ndtr(shared)).astype(int)
    ids = np.repeat(np.arange(400), sizes)
    labels = (random.random(400) < 0.3)[ids]
    own = random.normal(size=len(ids))
    return math.sqrt(icc) * shared[ids] + math.sqrt(1 - icc) * own + SHIFT * labels, labels, ids


def clusters(size: int, icc: float, goal: Any, informative: bool = False) -> Draw:
    """With ``clusters=``, from one row of each, and with clusters ignored."""
    cap = goal.expression == fpr

    def draw(random: Random) -> Values:
        scores, labels, ids = of_clusters(random, size, icc, informative)
        first = np.unique(ids, return_index=True)[1]
        cuts = {
            "": certify(scores, labels, goal, clusters=ids),
            ", one row each": certify(scores[first], labels[first], goal),
            ", ignored": certify(scores, labels, goal),
        }
        found = {}
        for name, made in cuts.items():
            at = made.threshold if made.certified else math.inf
            false, true = ndtr(-at), ndtr(SHIFT - at)
            bad = made.certified and (false > 0.05 if cap else true < 0.8)
            found |= {f"broken{name}": float(bad), f"kept{name}": float(true if cap else 1 - false)}
        return found

    return draw


def mixed_labels(random: Random) -> Values:
    """Every cluster has positives and negatives; where there are more, all scores are higher."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    ids = np.repeat(np.arange(400), random.integers(1, 31, 400))
    own = random.normal(size=400)[ids]
    labels = random.random(len(ids)) < ndtr(own - 1)
    scores = 0.8 * own + 0.6 * random.normal(size=len(ids)) + SHIFT * labels
    found: Values = {}
    for name, more in (("", {"clusters": ids}), (", ignored", {})):
        made = certify(scores, labels, fpr <= 0.05, **more)
        negatives = weights * ndtr(1 - nodes)
        true = float(negatives @ ndtr((0.8 * nodes - made.threshold) / 0.6) / negatives.sum())
        found |= {f"broken{name}": float(true > 0.05)}
    return found


def cluster_settings() -> list[Setting]:
    made = []
    best = float(ndtr(SHIFT - ndtri(0.95)))
    for size in (1, 10, 100):
        for icc in (0.0, 0.3, 0.6, 0.9):
            name = f"`fpr <= 0.05`, 400 clusters of 1 to {size}, correlation {icc}"
            made.append(Setting("clusters", name, clusters(size, icc, fpr <= 0.05), best))
    large = "`fpr <= 0.05`, large clusters have high scores, correlation 0.6"
    made.append(Setting("clusters", large, clusters(30, 0.6, fpr <= 0.05, True), best))
    floor = "`recall >= 0.8`, 400 clusters of 1 to 30, correlation 0.6"
    tnr = float(ndtr(SHIFT - ndtri(0.8)))
    made.append(Setting("clusters", floor, clusters(30, 0.6, recall >= 0.8), tnr))
    name = "`fpr <= 0.05`, labels and scores depend on the cluster"
    return [*made, Setting("clusters", name, mixed_labels)]


# --- costs ---------------------------------------------------------------------------------------


def mean_cost(n: int) -> Draw:
    """The upper bound of a mean cost at a fixed threshold: misses up to 500, false alarms 5."""
    truth = 0.2 * ndtr(1 - SHIFT) * 100 + 0.8 * ndtr(-1.0) * 5

    def draw(random: Random) -> Values:
        scores, labels = gaussian(random, n, 0.2)
        amounts = 500 * random.beta(1, 4, n)
        paid = np.where(labels & (scores <= 1), amounts, 5.0 * (~labels & (scores > 1)))
        bound = upper_mean(paid, 500.0, DELTA)
        return {"broken": float(bound < truth), "kept": float(bound)}

    return draw


def cost_of(at: Any) -> Any:
    """Misses cost 100 on average, false alarms 5."""
    return 0.2 * ndtr(at - SHIFT) * 100 + 0.8 * ndtr(-at) * 5


def certified_cost(random: Random) -> Values:
    """Recall and the mean cost at the threshold that ``certify`` takes."""
    scores, labels = gaussian(random, 3000, 0.2)
    amounts = 500 * random.beta(1, 4, 3000)
    goal = [recall >= 0.7, cost(miss=1, false_alarm=5) <= 3]
    made = certify(scores, labels, goal, amounts=amounts, largest_amount=500.0)
    if not made.certified:
        return {"broken": 0.0, "certified": 0.0}
    at = made.threshold
    return {"broken": float(ndtr(SHIFT - at) < 0.7 or cost_of(at) > 3), "certified": 1.0}


def cheapest(random: Random) -> Values:
    """The cheapest threshold, with a recall of 90 % proved."""
    problem = Problem.parse("minimize cost(miss=100, false_alarm=5) subject to recall >= 0.9")
    made = certify(*gaussian(random, 3000, 0.2), problem)
    at = made.threshold if made.certified else -math.inf
    bad = made.certified and ndtr(SHIFT - at) < 0.9
    return {"broken": float(bad), "kept": float(cost_of(at)), "certified": float(made.certified)}


COSTS = [
    Setting("costs", "bound of a mean cost at a given threshold, 500 rows", mean_cost(500), 1.97),
    Setting(
        "costs", "bound of a mean cost at a given threshold, 5,000 rows", mean_cost(5000), 1.97
    ),
    Setting("costs", "`recall >= 0.7` and `cost(...) <= 3` with amounts", certified_cost),
    Setting(
        "costs",
        "`minimize cost(...) subject to recall >= 0.9`",
        cheapest,
        float(cost_of(np.linspace(-2, SHIFT - ndtri(0.9), 9001)).min()),
    ),
]


# --- several outputs, prior shift, three-way, lots, capacity --------------------------------------


FIFTY = list(map(str, range(50)))
SHARES = np.geomspace(0.3, 0.02, 50)


def fifty_rows(random: Random) -> tuple[Any, Any]:
    """50 outputs that share half of their noise."""
    labels = random.random((2000, 50)) < SHARES
    noise = random.normal(size=(2000, 1)) + random.normal(size=(2000, 50))
    return math.sqrt(0.5) * noise + SHIFT * labels, labels


def of_outputs(cuts: Any, cap: bool) -> Values:
    cuts = np.asarray(cuts, float)
    bad = ndtr(-cuts) > 0.05 if cap else ndtr(SHIFT - cuts) < 0.8
    kept = ndtr(SHIFT - cuts) if cap else ndtr(cuts)
    mean = float(np.mean(kept)) if len(cuts) else 0.0
    return {"broken": float(np.any(bad)), "kept": mean, "certified": len(cuts) / 50}


def outputs(goal: Any) -> Draw:
    def draw(random: Random) -> Values:
        made = certify(*fifty_rows(random), goal, outputs=FIFTY)
        return of_outputs(list(made.thresholds.values()), goal.expression == fpr)

    return draw


def clustered_outputs(random: Random) -> Values:
    """10 outputs of 400 clusters of 1 to 10 rows, which share 60 % of the noise of all outputs."""
    ids = np.repeat(np.arange(400), random.integers(1, 11, 400))
    labels = (random.random((400, 10)) < 0.3)[ids]
    shared, own = random.normal(size=(400, 1))[ids], random.normal(size=(len(ids), 10))
    scores = math.sqrt(0.6) * shared + math.sqrt(0.4) * own + SHIFT * labels
    found: Values = {}
    for name, more in (("", {"clusters": ids}), (", ignored", {})):
        made = certify(scores, labels, fpr <= 0.05, outputs=FIFTY[:10], **more)
        cuts = np.array(list(made.thresholds.values()))
        found |= {f"broken{name}": float(np.any(ndtr(-cuts) > 0.05))}
        found |= {f"kept{name}": float(ndtr(SHIFT - cuts).mean())}
    return found


def outputs_by_mapie(name: str, level: float) -> Draw:
    """One controller an output, with a fiftieth of the risk."""

    def draw(random: Random) -> Values:
        scores, labels = fifty_rows(random)
        cuts = [
            mapie_threshold(
                scores[:, k], labels[:, k], SHARES[k], name, level, level=1 - DELTA / 50
            )
            for k in range(50)
        ]
        return of_outputs([cut for cut in cuts if not math.isnan(cut)], name == "fpr")

    return draw


def shifted(share_now: float) -> Draw:
    """``precision >= 0.5`` from rows with 20 % positives, used where there are others."""

    def draw(random: Random) -> Values:
        scores, labels = gaussian(random, 5000, 0.2)
        now = gaussian(random, 8000, share_now)[0]
        found: Values = {}
        for name, more in (("", {"unlabelled": now}), (", ignored", {})):
            made = certify(scores, labels, precision >= 0.5, **more)
            at = made.threshold if made.certified else math.inf
            bad = made.certified and precision_at(at, share_now) < 0.5
            found |= {f"broken{name}": float(bad), f"kept{name}": float(ndtr(SHIFT - at))}
        return found

    return draw


def shift_by_mapie(share_now: float) -> Draw:
    """MAPIE knows of no shift: as if the share of positives stayed."""

    def draw(random: Random) -> Values:
        scores, labels = gaussian(random, 5000, 0.2)
        gaussian(random, 8000, share_now)
        at = mapie_threshold(scores, labels, 0.2, "precision", 0.5, level=1 - DELTA)
        bad = precision_at(at, share_now) < 0.5
        return {"broken": float(bad), "kept": 0.0 if math.isnan(at) else float(ndtr(SHIFT - at))}

    return draw


def interval_of_prevalence(random: Random) -> Values:
    """``prevalence=(0.05, 0.1)``; 5 % come."""
    scores, labels = gaussian(random, 5000, 0.2)
    made = certify(scores, labels, precision >= 0.5, prevalence=(0.05, 0.1))
    at = made.threshold if made.certified else math.inf
    bad = made.certified and precision_at(at, 0.05) < 0.5
    return {"broken": float(bad), "kept": float(ndtr(SHIFT - at))}


CUTS = np.linspace(-1, 6, 70_001)


def recall_at_precision(level: float, share: float) -> float:
    """The recall of the lowest threshold with a precision."""
    return float(ndtr(SHIFT - CUTS[precision_at(CUTS, share) >= level].min()))


def broken_sides(up: float, low: float) -> bool:
    """Whether precision 90 % above or npv 97 % below is false."""
    tp, fn = 0.2 * ndtr(SHIFT - up), 0.2 * ndtr(low - SHIFT)
    false = tp / (tp + 0.8 * ndtr(-up)) < 0.9 if math.isfinite(up) else False
    return bool(false or (fn / (fn + 0.8 * ndtr(low)) > 0.03 if math.isfinite(low) else False))


def decided(up: float, low: float) -> float:
    """The share that is decided without a review."""
    alerts = 0.2 * ndtr(SHIFT - up) + 0.8 * ndtr(-up)
    return float(alerts + 0.2 * ndtr(low - SHIFT) + 0.8 * ndtr(low))


def three_way(random: Random) -> Values:
    scores, labels = gaussian(random, 4000, 0.2)
    made = certify_three_way(scores, labels, precision >= 0.9, npv >= 0.97)
    if not made.certified:
        return {"broken": 0.0, "kept": 0.0}
    up = math.inf if made.upper is None else float(made.upper)
    low = -math.inf if made.lower is None else float(made.lower)
    return {"broken": float(broken_sides(up, low)), "kept": decided(up, low)}


def three_way_by_mapie(random: Random) -> Values:
    """Both as risks of a pair of thresholds, on a grid of 20 each, fewest abstentions."""
    from mapie.risk_control import BinaryClassificationController, abstention_rate
    from mapie.risk_control import negative_predictive_value as below
    from mapie.risk_control import positive_predictive_value as above

    scores, labels = gaussian(random, 4000, 0.2)
    odds = math.log(0.2 / 0.8) - SHIFT**2 / 2
    at = np.linspace(0.05, 0.95, 20)
    pairs = np.array([(low, up) for low in at for up in at if low < up])

    def predict(x: Any, low: float, up: float) -> Any:
        return np.where(x[:, 0] >= up, 1.0, np.where(x[:, 0] < low, 0.0, np.nan))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = BinaryClassificationController(
            predict,
            [above, below],
            [0.9, 0.97],
            confidence_level=1 - DELTA,
            best_predict_param_choice=abstention_rate,
            list_predict_params=pairs,
        ).calibrate(expit(SHIFT * scores + odds)[:, None], labels.astype(int))
    if found.best_predict_param is None:
        return {"broken": 0.0, "kept": 0.0}
    low, up = ((math.log(p / (1 - p)) - odds) / SHIFT for p in found.best_predict_param)
    return {"broken": float(broken_sides(up, low)), "kept": decided(up, low)}


def best_three_way() -> float:
    cuts = np.linspace(-3, 6, 90_001)
    fn = 0.2 * ndtr(cuts - SHIFT)
    up = cuts[precision_at(cuts, 0.2) >= 0.9].min()
    return decided(float(up), float(cuts[fn / (fn + 0.8 * ndtr(cuts)) <= 0.03].max()))


def steps(values: int) -> dict[bool, Any]:
    """Gaussian scores rounded to 12 or 3 values: the share of each in either class."""
    ends = np.append(np.append(-np.inf, np.arange(1, 12) / 2 - 1.75), np.inf)
    return {
        positive: np.diff(ndtr(ends - SHIFT * positive)).reshape(values, 12 // values).sum(1)
        for positive in (False, True)
    }


def lots(values: int) -> Draw:
    law = steps(values)

    def draw(random: Random) -> Values:
        labels = random.random(1000) < 0.3
        drawn = {c: random.choice(values, 1000, p=p) for c, p in law.items()}
        scores = np.where(labels, drawn[True], drawn[False]).astype(float)
        found: Values = {}
        ids = {"ties": "lot", "ids": np.arange(1000)}
        for name, given in (("", ids), (", ties rejected", {})):
            made = certify(scores, labels, fpr <= 0.05, **given)
            lot, at = (made.lots or (1.0,))[0], made.threshold
            level = np.arange(values)
            accepted = (level > at) + (1 - lot) * (level == at)
            rates = {c: float(p @ accepted) for c, p in law.items()}
            found |= {f"broken{name}": float(rates[False] > 0.05), f"kept{name}": rates[True]}
        return found

    return draw


def best_by_lot(values: int) -> float:
    above = {c: np.append(np.cumsum(p[::-1])[::-1], 0.0)[::-1] for c, p in steps(values).items()}
    return float(np.interp(0.05, above[False], above[True]))


def agreement(rate: Any) -> Setting:
    """Matthews' correlation or Cohen's kappa, 4 points below the best that there is."""
    cuts = np.linspace(-1, 4, 4001)
    level = float(rate.at_shares(ndtr(SHIFT - cuts), ndtr(-cuts), 0.2).max()) - 0.04

    def draw(random: Random) -> Values:
        made = certify(*gaussian(random, 2000, 0.2), rate >= level)
        if not made.certified:
            return {"broken": 0.0, "certified": 0.0}
        true = rate.at_shares(ndtr(SHIFT - made.threshold), ndtr(-made.threshold), 0.2)
        return {"broken": float(true < level), "certified": 1.0}

    return Setting("agreement", f"`{rate}` 4 points below the best, 2,000 rows", draw)


def capacity(random: Random) -> Values:
    """120 days whose scores shift from day to day."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    day = np.repeat(np.arange(120), random.poisson(60, 120))
    scores = random.normal(size=len(day)) + 0.3 * random.normal(size=120)[day]
    goal = "alerts <= 6 per day on 90 % of days"
    at = certify(scores, None, goal, times=day.astype(float), accept_drift=True).threshold
    more = float(weights @ pdtrc(6, 60 * ndtr(0.3 * nodes - at)) / weights.sum())
    return {"broken": float(more > 0.1), "kept": 1 - more}


OTHERS = [
    Setting(
        "outputs",
        "`fpr <= 0.05` for each of 50 outputs",
        outputs(fpr <= 0.05),
        float(ndtr(SHIFT - ndtri(0.95))),
        outputs_by_mapie("fpr", 0.05),
        100,
    ),
    Setting(
        "outputs",
        "`recall >= 0.8` for each of 50 outputs",
        outputs(recall >= 0.8),
        float(ndtr(SHIFT - ndtri(0.8))),
        outputs_by_mapie("recall", 0.8),
        100,
    ),
    Setting(
        "outputs",
        "`fpr <= 0.05` for each of 10 outputs, 400 clusters",
        clustered_outputs,
        float(ndtr(SHIFT - ndtri(0.95))),
    ),
    *(
        Setting(
            "shifts",
            f"`precision >= 0.5`, 20 % positives become {100 * share:g} %",
            shifted(share),
            recall_at_precision(0.5, share),
            shift_by_mapie(share),
        )
        for share in (0.05, 0.1, 0.4)
    ),
    Setting(
        "shifts",
        "`precision >= 0.5` with `prevalence=(0.05, 0.1)`",
        interval_of_prevalence,
        recall_at_precision(0.5, 0.05),
    ),
    Setting(
        "three_way",
        "accept at precision 0.9, reject at npv 0.97",
        three_way,
        best_three_way(),
        three_way_by_mapie,
    ),
    *(
        Setting("lots", f"`fpr <= 0.05`, {k} distinct scores, by lot", lots(k), best_by_lot(k))
        for k in (12, 3)
    ),
    *map(agreement, (mcc, kappa)),
    Setting("capacity", "`alerts <= 6 per day on 90 % of days`, 120 days", capacity, 0.9),
]


# --- label plans ----------------------------------------------------------------------------------


def by_plan(goal: Any, n: int, budget: int, share: float, shift: float, **options: Any) -> Draw:
    """The rows that a plan asks for are labelled, and the bound is proved from them."""

    def draw(random: Random) -> Values:
        scores, positive = gaussian(random, n, share, shift)
        plan = label_plan(
            scores, goal, budget, seed=int(random.integers(2**31)), prevalence=share, **options
        )
        labels = np.full(n, np.nan)
        asked = list(plan.rows)
        labels[asked] = positive[asked]
        if "reviewed" in options:
            above = scores > options["reviewed"]
            labels[above] = positive[above]
        made = certify(scores, labels, goal, plan=plan)
        at = made.threshold if made.certified else math.inf
        truth = {
            "fpr": ndtr(-at),
            "precision": precision_at(at, share, shift) if made.certified else 1.0,
            "recall": ndtr(shift - at),
        }[str(goal.expression)]
        bad = made.certified and (truth > goal.level if goal.sense == "<=" else truth < goal.level)
        kept = ndtr(at) if str(goal.expression) == "recall" else ndtr(shift - at)
        return {"broken": float(bad), "kept": float(kept if made.certified else 0.0)}

    return draw


def of_alerts(level: float) -> Draw:
    """A precision from rows above an old threshold alone; their share of positives varies."""

    def draw(random: Random) -> Values:
        old = random.uniform(0.5, 2.0)
        scores, positive = gaussian(random, 5000, 0.05)
        made = certify(scores, np.where(scores > old, positive, np.nan), precision >= level)
        at = made.threshold if made.certified else math.inf
        bad = made.certified and precision_at(at, 0.05) < level
        best = max(old, float(CUTS[precision_at(CUTS, 0.05) >= level].min()))
        return {"broken": float(bad), "kept": float(ndtr(SHIFT - at) / ndtr(SHIFT - best))}

    return draw


PLANS = [
    *(
        Setting(
            "plans", f"`precision >= {level}` from labels of alerts alone", of_alerts(level), 1.0
        )
        for level in (0.2, 0.5)
    ),
    Setting(
        "plans",
        "`fpr <= 0.001`, 1 % positives, 2,000 labels of 200,000 rows",
        by_plan(fpr <= 0.001, 200_000, 2000, 0.01, 4.0),
        float(ndtr(4 - ndtri(0.999))),
    ),
    Setting(
        "plans",
        "`fpr <= 0.01`, 5 % positives, 500 labels of 20,000 rows",
        by_plan(fpr <= 0.01, 20_000, 500, 0.05, 3.0),
        float(ndtr(3 - ndtri(0.99))),
    ),
    Setting(
        "plans",
        "`precision >= 0.8`, 1,000 labels of 50,000 rows",
        by_plan(precision >= 0.8, 50_000, 1000, 0.02, 3.5),
    ),
    Setting(
        "plans",
        "`recall >= 0.7` from reviewed alerts and 2,000 labels below",
        by_plan(recall >= 0.7, 50_000, 2000, 0.05, 3.5, reviewed=1.6),
        float(ndtr(3.5 + ndtri(0.3))),
    ),
]


def gap_power(level: float, n: int) -> Setting:
    """How often two groups of ``n`` positives prove a gap of recalls that are both 90 %."""
    sides = [Subset((("g", name),), POSITIVES) for name in "ab"]
    gap = recall.on(g="a") - recall.on(g="b")

    def draw(random: Random) -> Values:
        counts = random.binomial(n, 0.9, 2).tolist()
        known = {s: CountEvidence(k, k, n, 1) for s, k in zip(sides, counts, strict=True)}
        return {"certified": max(upper_bound(s, known, DELTA, None) for s in (gap, -gap)) <= level}

    return Setting("power", f"gap <= {level}, {n:,} positives each", draw)


POWER = [gap_power(0.02, 5400), gap_power(0.05, 900), gap_power(0.1, 250)]
SETTINGS = [*DISPLAYED, *COSTS, *OTHERS, *PLANS, *cluster_settings(), *POWER]


def run(setting: Setting, draws: int, mapie: bool = False) -> results.Row:
    """The means over draws."""
    draw = setting.mapie if mapie else setting.draw
    assert draw is not None
    random = np.random.default_rng(0)
    found = [draw(random) for _ in range(draws)]
    names = dict.fromkeys(name for values in found for name in values)
    means = {name: float(np.mean([values.get(name, 0.0) for values in found])) for name in names}
    known = {"part": setting.part, "setting": setting.name, "method": "mapie" if mapie else "ours"}
    return {**known, "draws": draws, **means}


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def table(rows: list[results.Row], peers_only: bool = False) -> str:
    """What is broken and kept of every setting, MAPIE's beside it."""
    lines = ["| setting | draws | broken | kept, best possible | MAPIE: broken, kept |"]
    lines.append("| --- | --- | --- | --- | --- |")
    by = {(row["setting"], row["method"]): row for row in rows}
    for setting in SETTINGS:
        row, peer = by.get((setting.name, "ours")), by.get((setting.name, "mapie"))
        if row is None or "broken" not in row or (peers_only and peer is None):
            continue
        text = (lambda x: f"{x:.2f}") if setting.part == "costs" else percent
        kept = text(row["kept"]) if "kept" in row else ""
        if not kept and "certified" in row:
            kept = f"certified in {percent(row['certified'])}"
        kept += "" if setting.best is None else f", {text(setting.best)}"
        beside = f"{percent(peer['broken'])}, {percent(peer['kept'])}" if peer else ""
        lines.append(
            f"| {setting.name} | {row['draws']:,} | {percent(row['broken'])} | {kept} | {beside} |"
        )
    return "\n".join(lines)


def verdict(rows: list[results.Row]) -> str:
    """How many settings there are, and the most that is broken."""
    own = [row for row in rows if row["method"] == "ours" and "broken" in row]
    bad = sum(row["broken"] > most(row["draws"]) for row in own)
    high = max(row["broken"] for row in own)
    return (
        f"{len(own)} settings, {bad} with more broken promises than 5 % and three standard errors; "
        f"the most is {percent(high)} %."
    )


def of_large_clusters(rows: list[results.Row]) -> str:
    """Clusters of up to 100 rows: three ways side by side."""
    ways = ("", ", one row each", ", ignored")
    lines = ["| intra-class correlation | broken: `clusters=` | one row each | ignored | "]
    lines[0] += "recall: `clusters=` | one row each |"
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        if "1 to 100" in row["setting"]:
            cells = [percent(row[f"broken{way}"]) for way in ways]
            cells += [percent(row[f"kept{way}"]) for way in ways[:2]]
            lines.append(f"| {row['setting'].split()[-1]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def newest() -> list[results.Row]:
    """The last row of every setting and method."""
    lines = [line for line in results.lines_of(RESULTS) if "setting" in line]
    return list({(line["setting"], line["method"]): line for line in lines}.values())


def main() -> None:
    parser = results.parser(__doc__, "docs", quick="100 draws, nothing is written", minutes=1e9)
    parser.add_argument("--only", choices=sorted({setting.part for setting in SETTINGS}))
    parser.add_argument("--mapie", action="store_true", help="MAPIE, where it has the goal")
    given = parser.parse_args()
    if given.docs:
        fill(PAGE, "beside", table(newest(), peers_only=True))
        fill(PAGE, "rows", f"{verdict(newest())}\n\n{table(newest())}")
        fill(PAGE, "clusters", of_large_clusters(newest()))
        return
    method = "mapie" if given.mapie else "ours"
    wanted = [s for s in SETTINGS if given.only in (None, s.part)]
    wanted = [s for s in wanted if s.mapie is not None] if given.mapie else wanted
    done = {r["setting"]: r["draws"] for r in newest() if r["method"] == method}
    many = {s.name: 100 if given.quick else s.mapie_draws if given.mapie else DRAWS for s in wanted}

    def is_done(setting: Setting) -> bool:
        return not given.quick and done.get(setting.name, 0) >= many[setting.name]

    bad = 0
    for setting in results.pending(wanted, is_done, given.minutes):
        row = run(setting, many[setting.name], given.mapie)
        bad += method == "ours" and row.get("broken", 0.0) > most(row["draws"])
        print(json.dumps(row), flush=True)
        if not given.quick:
            results.append(RESULTS, row, packages=["mapie"] if given.mapie else [])
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
