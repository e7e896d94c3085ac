"""Promises at shifts that were fixed before."""

import json

import numpy as np
import pytest
from scipy import stats

from setpoint import Problem
from setpoint.axes.class_choice import best_shifts
from setpoint.batch import ScoredExamples
from setpoint.certificates import ClassCertificate, certify_shifts, shifts_to_prove
from setpoint.certificates.betting import upper_mean
from setpoint.certificates.storage import checksum
from setpoint.results import clopper_pearson

NAMES = ("cat", "dog", "bird")
SHIFTS = (0.2, -0.1, -0.1)


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    scores = rng.normal(size=(n, 3))
    scores[np.arange(n), labels] += 2
    return scores, labels


def prove(goal, n=300, seed=0, **more):
    scores, labels = draw(n, seed)
    return certify_shifts(scores, labels, Problem.parse(goal), SHIFTS, classes=NAMES, **more)


def test_what_is_proved_is_the_exact_limit_of_the_binomial_law():
    found = prove('minimize error subject to recall of "dog" >= 0.5 and fpr of "cat" or "dog" <= 1')
    scores, labels = draw()
    taken = (scores - SHIFTS).argmax(1)
    right = int((taken[labels == 1] == 1).sum())
    dog, fpr = found.claims
    assert found.status == "certified"
    assert dog.counts == f"{right} of {(labels == 1).sum()}"
    assert dog.measured == right / (labels == 1).sum()
    assert dog.proved == pytest.approx(clopper_pearson(right, (labels == 1).sum(), 0.95).low)
    wrong = int((taken[labels == 2] != 2).sum())
    assert fpr.counts == f"{wrong} of {(labels == 2).sum()}"
    assert fpr.proved == pytest.approx(clopper_pearson(wrong, (labels == 2).sum(), 0.95).high)
    assert (found.right, found.examples) == ((taken == labels).sum(), 300)
    assert (found.exit_code, found.shifts) == (0, SHIFTS)


def test_the_lowest_is_proved_class_by_class():
    found = prove("maximize accuracy subject to lowest(recall) >= 0.6")
    bounds = [claim.bound for claim in found.claims]
    assert bounds == [f'recall of "{name}" >= 0.6' for name in NAMES]
    assert found.certified == all(claim.proved >= 0.6 for claim in found.claims)
    assert prove("maximize macro(recall) subject to error <= 0.5").certified
    strict = prove("maximize accuracy subject to lowest(recall) >= 0.95")
    assert (strict.status, strict.exit_code) == ("not certified", 1)


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        ("maximize macro(recall)", "has no bound"),
        ("maximize macro(recall) subject to coverage of 0 at 0.3", "exact value"),
        ("minimize error subject to macro(recall) >= 0.1", "only bounds on a rate"),
        ("minimize error subject to lowest(fpr) <= 0.9", "only bounds on a rate"),
        ('maximize macro(recall) subject to f_score(1) of "cat" >= 0.1', "only bounds on a rate"),
    ],
)
def test_what_nobody_can_prove_is_said(goal, why):
    goal = goal.replace("of 0", 'of "cat"')
    found = prove(goal)
    assert found.status == "no certificate"
    assert why in found.notes[0]
    assert why.split()[0] in str(found)
    assert found.exit_code == 0


def test_a_class_that_is_not_there_proves_nothing():
    scores, labels = draw()
    problem = Problem.parse('minimize error subject to recall of "bird" >= 0.1')
    found = certify_shifts(scores, labels.clip(max=1), problem, SHIFTS, classes=NAMES)
    assert found.status == "infeasible"
    assert found.claims[0].measured is None
    assert "no example to measure it by" in str(found)
    assert found.notes == (
        '`recall of "bird" >= 0.1` cannot be proved by 0 examples: it takes 2 at least',
    )
    empty = Problem.parse('minimize error subject to fpr of "cat" <= 1')
    found = certify_shifts(scores, 0 * labels, empty, SHIFTS, classes=NAMES)
    assert found.exit_code == 1


def test_a_false_promise_is_certified_as_rarely_as_was_asked():
    scores, labels = draw(200_000, seed=9)
    taken = (scores - SHIFTS).argmax(1)
    truth = (taken[labels == 2] == 2).mean()
    problem = Problem.parse(f'minimize error subject to recall of "bird" >= {truth + 0.01:.3f}')
    trials = 400
    certified = 0
    for seed in range(trials):
        part = np.random.default_rng(seed).integers(0, len(labels), 250)
        given = (scores[part], labels[part], problem, SHIFTS)
        certified += certify_shifts(*given, classes=NAMES, confidence=0.9).certified
    assert certified <= 0.1 * trials + 3 * (0.09 * trials) ** 0.5  # three deviations


@pytest.mark.parametrize(
    ("goal", "level", "most"),
    [
        ('maximize recall of "cat" subject to recall of "bird" >= 0.7', 0.7, False),
        ('maximize recall of "bird" subject to fpr of "bird" <= 0.15', 0.15, True),
    ],
)
def test_shifts_are_chosen_with_room_for_a_proof_elsewhere(goal, level, most):
    problem = Problem.parse(goal)
    proved = np.zeros(2)
    for seed in range(20):
        scores, labels = draw(1200, seed)
        here, there = ((scores[rows], labels[rows]) for rows in (slice(600), slice(600, None)))
        just = problem.choose(*here, classes=NAMES).thresholds
        room, missed = shifts_to_prove(problem, *here, confidence=0.95, classes=NAMES)
        own = certify_shifts(*here, problem, room, confidence=0.999, classes=NAMES)
        assert (own.certified, missed) == (True, "")
        count, total = map(int, own.claims[0].counts.split(" of "))
        # no more room than it takes, but for what the search leaves
        ends = clopper_pearson(count + (total // 20 if most else -(total // 20)), total, 0.999)
        assert ends.high > level if most else ends.low < level
        proved += [
            certify_shifts(*there, problem, t, classes=NAMES).certified for t in (just, room)
        ]
    # both parts err by one standard error: 3.1 of them minus 1.6 are room, 1 / sqrt(2) of that is
    # 1.0 deviations, so 85 % are proved, less three deviations of 20 draws; without room it is
    # luck, and what the search happens to leave
    assert proved[0] <= 10
    assert proved[1] >= 20 * 0.85 - 3 * (20 * 0.85 * 0.15) ** 0.5


@pytest.mark.parametrize(
    "goal",
    [
        "maximize macro(recall)",
        'maximize macro(recall) subject to coverage of "cat" at 0.3',
        'maximize macro(recall) subject to recall of "dog" >= 0.999',
        'maximize macro(recall) subject to precision of "dog" >= 0.9 and recall of "dog" >= 0.9',
    ],
)
def test_without_such_shifts_they_are_the_best_ones(goal):
    problem, (scores, labels) = Problem.parse(goal), draw()
    room = shifts_to_prove(problem, scores, labels, confidence=0.95, classes=NAMES)
    best = best_shifts(problem, ScoredExamples(scores, labels, classes=NAMES))
    np.testing.assert_array_equal(room[0], best[0])
    assert room[1] == best[1]


def test_new_rows_are_tested_against_the_promise_share_by_share():
    found = prove('minimize error subject to recall of "dog" >= 0.5 and lowest(recall) >= 0.4')
    scores, labels = draw(400, seed=1)
    checked = ClassCertificate.from_json(found.to_json()).check(scores, labels)
    assert (checked.verdict, checked.exit_code) == ("ok", 0)
    promised = checked.findings[:4]
    assert promised[0].name == 'recall of "dog" >= 0.5'
    taken = (scores - SHIFTS).argmax(1)
    right, dogs = int((taken[labels == 1] == 1).sum()), int((labels == 1).sum())
    assert promised[0].measured == right / dogs
    assert promised[0].chance == pytest.approx(stats.binom.cdf(right, dogs, 0.5))
    assert [f.measured for f in checked.findings[4:]] == [np.mean(taken == k) for k in range(3)]
    worse = scores.copy()
    worse[labels == 2, 2] -= 4  # birds are lost, dogs are not
    broken = found.check(worse, labels)
    assert broken.verdict == "broken"
    assert [f.name for f in broken.findings if f.alarm] == ['recall of "bird" >= 0.4']
    assert found.check(worse).verdict == "drift"
    caps = prove('minimize error subject to fpr of "dog" <= 0.3')
    seen = caps.check(scores, labels).findings[0]
    wrong, others = int((taken[labels != 1] == 1).sum()), int((labels != 1).sum())
    assert seen.chance == pytest.approx(stats.binom.sf(wrong - 1, others, 0.3))
    # as long as the promise is kept, other shares of classes are none of its business
    assert found.check(scores[labels != 0], labels[labels != 0]).verdict == "ok"


def test_all_promises_together_alarm_as_rarely_as_was_asked():
    found = prove("minimize error subject to lowest(recall) >= 0.4")
    labels = np.repeat([0, 1, 2], 10)
    taken = np.where(np.arange(30) < 22, labels, 0)  # 2 of 10 birds are found
    scores = 9 * np.eye(3)[taken]
    chance = stats.binom.cdf(2, 10, 0.4)  # 0.17, of three promises
    assert found.check(scores, labels, significance=2.9 * chance).verdict == "ok"
    assert found.check(scores, labels, significance=3.1 * chance).verdict == "broken"


def test_checks_cry_wolf_as_rarely_as_was_asked():
    found = prove('minimize error subject to recall of "dog" >= 0.5', n=2000)
    alarms = sum(not found.check(draw(300, s)[0], significance=0.1) for s in range(100, 400))
    assert alarms <= 0.1 * 300 + 3 * (0.09 * 300) ** 0.5  # three deviations


def test_what_cannot_be_checked_is_said():
    scores, labels = draw()
    strict = prove("maximize accuracy subject to lowest(recall) >= 0.95")
    with pytest.raises(
        ValueError, match="no certificate to check, the goal is not certified: `recall"
    ):
        strict.check(scores)
    found = prove("maximize macro(recall)")
    assert found.check(scores, labels).verdict == "ok"
    assert found.check(scores[labels == 0], labels[labels == 0]).verdict == "drift"
    with pytest.raises(ValueError, match=r"scores are \[n, 3\]; got the shape \(300, 2\)"):
        found.check(scores[:, :2])
    with pytest.raises(ValueError, match="significance"):
        found.check(scores, significance=0)


def test_slices_are_counted_by_themselves():
    scores, labels = draw()
    side = np.array(["l", "r"] * 150)
    problem = Problem.parse('minimize error subject to recall of "dog" on side="l" >= 0.3')
    given = {"classes": NAMES, "groups": {"side": side}}
    found = certify_shifts(scores, labels, problem, SHIFTS, **given)
    here = (labels == 1) & (side == "l")
    taken = (scores - SHIFTS).argmax(1)
    assert found.claims[0].counts == f"{(taken[here] == 1).sum()} of {here.sum()}"


def test_json_reads_back_and_nothing_else_does():
    found = prove('minimize error subject to recall of "dog" >= 0.5')
    assert ClassCertificate.from_json(found.to_json()) == found
    body = json.loads(found.to_json())
    for changes in (
        {"status": "fine"},
        {"shifts": [1.0, 2.0]},
        {"shifts": [1.0, 2.0, "x"]},
        {"classes": ["a", "a", "b"]},
        {"confidence": 2.0},
        {"right": 301},
        {"predicted": [300]},
        {"predicted": [100, 100, -1]},
        {"predicted": [100, 100, 99.5]},
        {"goal": "maximize recall subject to fpr <= 0.1"},
        {"version": True},
        {"more": 1},
    ):
        forged = {**body, **changes}
        del forged["checksum"]
        with pytest.raises(ValueError, match=r"no valid certificate|version is True"):
            ClassCertificate.from_json(json.dumps({**forged, "checksum": checksum(forged)}))
    with pytest.raises(ValueError, match="changed"):
        ClassCertificate.from_json(json.dumps({**body, "right": 0}))
    with pytest.raises(ValueError, match="between 0 and 1"):
        prove("maximize macro(recall)", confidence=95)


def test_a_bound_on_the_error_alone_reads_back_and_is_checked():
    found = prove("maximize accuracy subject to error <= 0.5")
    again = ClassCertificate.from_json(found.to_json())
    assert found.certified
    assert again == found
    assert again.check(*draw()).verdict == "ok"


COSTS = [[0, 1, 4], [2, 0, 1], [10, 3, 0]]
CHEAP = f"maximize accuracy subject to cost({COSTS}) <= 1"


def test_the_mean_of_a_cost_matrix_is_proved_by_betting():
    found = prove(CHEAP, n=600)
    scores, labels = draw(600)
    paid = np.array(COSTS, float)[labels, (scores - SHIFTS).argmax(1)]
    (claim,) = found.claims
    assert found.certified
    assert claim.measured == pytest.approx(paid.mean())
    assert claim.proved == pytest.approx(upper_mean(paid, 10.0, 0.05))
    assert ClassCertificate.from_json(found.to_json()) == found
    assert found.check(*draw(600, 1)).verdict == "ok"
    assert found.check(scores, (labels + 1) % 3).verdict == "broken"
    dear = prove(CHEAP.replace("<= 1", "<= 0.3"), n=600)
    assert dear.notes[0] == f"`cost({COSTS}) <= 0.3` is not proved: at most {claim.proved:.4g} is"


def test_a_cost_says_how_many_examples_it_takes_if_none_of_them_costs_more_than_the_least():
    found = prove(CHEAP.replace("<= 1", "<= 0.1"), n=200)
    assert found.status == "infeasible"
    count = int(found.notes[0].split("it takes ")[1].split(" ")[0].replace(",", ""))
    assert (
        upper_mean(np.zeros(count), 10.0, 0.05) <= 0.1 < upper_mean(np.zeros(count - 1), 10, 0.05)
    )
    never = prove(CHEAP.replace("<= 1", "<= 0"))
    assert "no number of examples can" in never.notes[0]


def test_promises_on_a_cost_matrix_are_kept():
    """A fifth of the promises may be broken; the true mean is a hair above what is promised."""
    law = np.array([[0.3, 0.05, 0.05], [0.02, 0.26, 0.02], [0.02, 0.03, 0.25]])
    true = float((law * COSTS).sum())
    goal = Problem.parse(f"maximize accuracy subject to cost({COSTS}) <= {true - 1e-9}")
    rng, broken = np.random.default_rng(0), 0
    for _ in range(60):
        cells = rng.choice(9, 200, p=law.ravel())
        decided = np.eye(3)[cells % 3]
        made = certify_shifts(decided, cells // 3, goal, np.zeros(3), classes=NAMES, confidence=0.8)
        broken += made.certified
    assert broken <= 60 * 0.2 + 3 * np.sqrt(60 * 0.2 * 0.8)


def test_shifts_for_a_bound_on_a_cost_leave_room_for_the_proof():
    scores, labels = draw(900, 3)
    goal = Problem.parse(CHEAP.replace("<= 1", "<= 0.75"))
    shifts, missed = shifts_to_prove(goal, scores, labels, confidence=0.95, classes=NAMES)
    assert not missed
    assert certify_shifts(scores, labels, goal, shifts, classes=NAMES, confidence=0.98).certified
    assert certify_shifts(*draw(900, 4), goal, shifts, classes=NAMES).certified


def of_clusters(count, seed, size=20):
    """Rows of clusters that are decided alike, rightly in 85 of 100 clusters."""
    random = np.random.default_rng(seed)
    labels, right = random.integers(0, 3, count), random.random(count) < 0.85
    decided = np.where(right, labels, (labels + 1) % 3)
    who = np.repeat(np.arange(count), size)
    return np.eye(3)[decided][who], labels[who], who


def test_a_certificate_of_clusters_is_checked_by_one_row_of_each():
    """By rows, checks at 0.1 % alarmed in 32 of 100 cases without drift, and 94 of 100 monitors."""
    scores, labels, who = of_clusters(800, 0)
    goal = "maximize macro(recall) subject to recall of 1 >= 0.8"
    made = certify_shifts(scores, labels, goal, np.zeros(3), classes=range(3), clusters=who)
    made = ClassCertificate.from_json(made.to_json())
    assert (made.status, made.clusters, made.examples) == ("certified", 800, 800)
    for seed in range(1, 21):
        scores, labels, who = of_clusters(60, seed)
        assert made.check(scores, clusters=who).exit_code == 0
        found = made.check(scores, labels, clusters=[f"c{each}" for each in who])
        assert (found.exit_code, found.examples) == (0, 60)
    with pytest.raises(ValueError, match="about a row of each cluster: pass clusters="):
        made.check(scores, labels)
    with pytest.raises(ValueError, match="about a row of each cluster: pass clusters="):
        made.monitor().update(scores, labels)
    with pytest.raises(ValueError, match="clusters must have the shape of the scores"):
        made.check(scores, labels, clusters=np.arange(5))


def test_a_check_tests_the_rows_whose_label_is_known():
    made, (scores, labels) = prove('minimize error subject to recall of "dog" >= 0.5'), draw(seed=1)
    known = np.arange(300) % 3 > 0
    fewer = made.check(scores[known], labels[known])
    for missing in (np.nan, -1, None):
        some = np.where(known, labels.astype(object), missing)
        assert made.check(scores, some).findings[0] == fewer.findings[0]
    assert len(made.check(scores, np.full(300, np.nan)).findings) == len(
        made.check(scores).findings
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clusters": np.arange(5)}, r"clusters must have the shape of the scores, \(300,\)"),
        ({"times": np.arange(5)}, r"times must have the shape of the scores, \(300,\)"),
        ({"shifts": [0, 0]}, r"a finite number for each of the 3 classes; got \[0"),
        ({"shifts": [0, np.nan, 0]}, r"each of the 3 classes; got \[0.0, nan"),
        ({"labels": np.array(NAMES)[draw()[1]]}, "'dog' in row 0: 'dog' is column 1"),
    ],
)
def test_columns_that_do_not_fit_the_scores_are_refused(given, message):
    scores, labels = draw()
    given = {"labels": labels, "shifts": SHIFTS, **given}
    goal = 'minimize error subject to recall of "dog" >= 0.5'
    with pytest.raises(ValueError, match=message):
        certify_shifts(scores, problem=goal, classes=NAMES, **given)
    made = prove(goal, clusters=np.arange(300))
    with pytest.raises(ValueError, match="clusters must have the shape of the scores"):
        made.monitor().update(scores, labels, clusters=np.arange(5))
