"""Which targets a carried threshold misses on new data, and which nobody can judge."""

import numpy as np
import pytest

from setpoint import Problem, compare, f_score, fnr, fnr_at_fpr, fpr, precision, recall, roc_auc
from setpoint.comparison import Comparison, MethodTrial
from setpoint.comparison.trials import missed
from setpoint.solvers import METHODS, Method

LABELS = np.repeat([1, 0], [100, 1000])


def accepted(hits, alarms):
    return np.repeat([True, False, True, False], [hits, 100 - hits, alarms, 1000 - alarms])


def goal(target):
    return Problem(minimize=fnr, subject_to=target)


@pytest.mark.parametrize(
    ("target", "hits", "alarms", "is_missed"),
    [
        (fpr.at(0.05), 50, 63, False),  # 2 sqrt(0.05 x 0.95 / 1000) = 0.0138
        (fpr.at(0.05), 50, 64, True),
        (fpr.at(0.05), 50, 36, True),  # below is as far as above
        (recall.at(0.8), 88, 0, False),  # 2 sqrt(0.8 x 0.2 / 100) = 0.08, of the positives
        (recall.at(0.8), 89, 0, True),
        (precision.at(0.5), 60, 40, False),  # 2 sqrt(0.5 x 0.5 / 100) = 0.1, of the accepted
        (precision.at(0.5), 61, 39, True),
        (precision.at(0.5), 12, 4, False),  # 0.25 of 16 accepted
        (precision.at(0.5), 0, 0, True),  # nobody accepted: 0/0 is no precision
        (f_score(1).at(0.5), 1, 900, False),  # no number of examples stands behind it
        (fpr <= 0.05, 50, 51, True),  # a bound has no tolerance
        (fpr <= 0.05, 50, 50, False),
    ],
    ids=str,
)
def test_setpoints_are_missed_beyond_two_standard_errors_and_bounds_at_once(
    target, hits, alarms, is_missed
):
    said = missed(goal(target), accepted(hits, alarms), LABELS)
    assert bool(said) == is_missed
    if is_missed:
        assert said.startswith(f"missed: {target} became ")


def test_a_setpoint_that_was_missed_is_counted():
    """The validation part has scores 1 higher: its threshold accepts too few of the test part."""
    from setpoint.datasets import DataSplit, Table

    def parts(_seed):
        r = np.random.default_rng(0)
        y = (np.arange(600) % 3 == 0).astype(np.int64)
        x = (r.normal(size=(600, 1)) + 2 * y[:, None]).astype(np.float32)
        return DataSplit(Table(x, y), Table(x + 1, y), Table(x, y))

    found = compare(goal(fpr.at(0.1)), parts, ["focal"], steps=20, batch_size=100, seeds=1)
    assert found.trials[0].status.startswith("missed: fpr at 0.1 became 0.0")
    assert (found.rows[0].missed, found.rows[0].judged) == (1, 1)
    assert "1 of 1" in str(found)
    assert "a setpoint when the rate is more than two standard" in " ".join(str(found).split())


def trial(seed, value, status="ok"):
    return MethodTrial("a", seed, value, value, value, 0.1, 5, 1.0, status)


@pytest.mark.parametrize(
    ("problem", "values", "shown"),
    [
        (fnr_at_fpr(0.1), (0.5, 0.4), "0 of 2"),
        (fnr_at_fpr(0.1), (0.5, None), "0 of 1"),
        (fnr_at_fpr(0.1), (None, None), ""),
        (roc_auc(fpr=(0, 0.2)), (0.5, 0.4), ""),
        (Problem(maximize=f_score(1)), (0.5, 0.4), ""),
        (goal(f_score(1).at(0.5)), (0.5, 0.4), ""),
        (goal([f_score(1) >= 0.5, fpr <= 0.1]), (0.5, 0.4), "0 of 2"),
    ],
    ids=str,
)
def test_what_was_not_judged_is_left_blank(problem, values, shown):
    found = Comparison(problem, tuple(trial(seed, value) for seed, value in enumerate(values)))
    header, line = str(found).splitlines()[2:4]
    assert line[header.index("target missed") :][:13].strip() == shown


def test_a_row_that_failed_judges_nothing():
    def refuses(_problem, _steps):
        raise ValueError("Only areas, please.")

    r = np.random.default_rng(0)
    data = r.normal(size=(400, 2)), np.arange(400) % 2
    own = {"refuses": Method(refuses), "focal": METHODS["focal"]}
    found = compare(fnr_at_fpr(0.2), data, own, steps=5, batch_size=50, seeds=2)
    assert [row.judged for row in found.rows] == [0, 2]
