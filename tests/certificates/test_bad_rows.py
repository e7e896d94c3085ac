"""Rows that cannot be certified as they are given: clear errors, and nothing is certified."""

import numpy as np
import pytest
from certificates.simulate import sample

from setpoint import certify, cost, fpr, label_plan
from setpoint.certificates import certify_three_way
from setpoint.export import certificate_card
from setpoint.problems import Problem
from setpoint.reports import report

N = 2000
SCORES, LABELS = sample(0, N)
IDS = np.arange(N) // 4
DAYS = np.datetime64("2024-01-01") + np.arange(N) // 20


@pytest.mark.parametrize(
    ("goal", "given", "message"),
    [
        ("fpr <= 0.1", {"clusters": np.where(IDS == 3, np.nan, IDS)}, "clusters has no id in row"),
        ("fpr <= 0.1", {"clusters": [None, *IDS[1:]]}, "clusters has no id in row 0"),
        ("fpr <= 0.1", {"clusters": np.zeros(N)}, "All rows belong to one cluster"),
        ("fpr <= 0.1", {"clusters": IDS[:-1]}, "clusters must have the shape of the scores"),
        (
            "fpr <= 0.1",
            {"times": np.full(N, np.datetime64("2024-01-01"))},
            "one time, 2024-01-01",
        ),
        ("fpr <= 0.1", {"times": np.where(IDS == 3, np.datetime64("NaT"), DAYS)}, "row"),
        ("fpr <= 0.1", {"times": ["soon"] * N}, "soon"),
        ("fpr <= 0.1", {"amounts": np.ones(N)}, "has no cost that amounts enter"),
        ("cost(miss=1, false_alarm=5) <= 8", {"amounts": -np.ones(N)}, "finite and at least 0"),
        ("cost(miss=1, false_alarm=5) <= 8", {"amounts": np.zeros(N)}, "All amounts are 0"),
        (
            "cost(miss=1, false_alarm=5) <= 8",
            {"amounts": np.full(N, 9.0), "largest_amount": 5.0},
            "largest_amount is 5, and a row has 9",
        ),
        ("fpr <= 0.1", {"prevalence": (0.3, 0.1)}, "from low to high"),
        ("alerts <= 9 per day on 90 % of days", {}, "times="),
    ],
)
def test_errors_say_what_is_wrong(goal, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        certify(SCORES, LABELS, goal, **given)


def test_the_order_of_rows_in_time_is_not_that_of_the_table():
    """Times need not be sorted: the certificate is that of the sorted rows."""
    order = np.random.default_rng(0).permutation(N)
    sorted_rows = certify(SCORES, LABELS, fpr <= 0.1, times=DAYS)
    shuffled = certify(SCORES[order], LABELS[order], fpr <= 0.1, times=DAYS[order])
    assert (shuffled.threshold, shuffled.period) == (sorted_rows.threshold, sorted_rows.period)
    drifting = SCORES + np.linspace(0, 3, N)
    for rows in (np.arange(N), order):
        found = certify(drifting[rows], LABELS[rows], fpr <= 0.1, times=DAYS[rows])
        assert not found.certified


@pytest.mark.parametrize("costs", [(-1, 5), (1, -5), (0, 0), (float("nan"), 1)])
def test_costs_are_positive(costs):
    with pytest.raises((ValueError, TypeError), match=r"at least 0|all zero|finite"):
        cost(miss=costs[0], false_alarm=costs[1])
    with pytest.raises(ValueError, match=r"at least 0|all zero|Cannot read|finite"):
        Problem.parse(f"minimize cost(miss={costs[0]}, false_alarm={costs[1]})")


def test_a_plan_is_for_its_own_scores_and_labels():
    plan = label_plan(SCORES, "fpr <= 0.05", budget=500)
    labels = np.full(N, np.nan)
    labels[list(plan.rows)] = LABELS[list(plan.rows)]
    assert certify(SCORES, labels, "fpr <= 0.05", plan=plan).status in (
        "certified",
        "not certified",
    )
    with pytest.raises(ValueError, match="made for other scores"):
        certify(SCORES + 1, labels, "fpr <= 0.05", plan=plan)
    undrawn = labels.copy()
    undrawn[np.flatnonzero(np.isnan(labels))[0]] = 1
    with pytest.raises(ValueError, match="was not drawn by the plan"):
        certify(SCORES, undrawn, "fpr <= 0.05", plan=plan)
    with pytest.raises(ValueError, match=r"plan= does not go with clusters=.*confidence= alone"):
        certify(SCORES, labels, "fpr <= 0.05", plan=plan, clusters=IDS)


def test_what_goes_nowhere_is_told():
    with pytest.raises(ValueError, match="largest_amount= is that of amounts="):
        certify(SCORES, LABELS, fpr <= 0.1, largest_amount=5.0)
    with pytest.raises(TypeError, match="plan= is what label_plan returns"):
        certify(SCORES, LABELS, fpr <= 0.1, plan="plan.json")


@pytest.mark.parametrize("missing", ["", b"", None, float("nan"), float("inf")])
def test_a_cluster_without_a_name_is_told(missing):
    ids = [*range(N - 1), missing]
    with pytest.raises(ValueError, match=f"clusters has no id in row {N - 1}"):
        certify(SCORES, LABELS, fpr <= 0.1, clusters=ids)
    if isinstance(missing, (str, float)):
        with pytest.raises(ValueError, match=f"clusters has no id in row {N - 1}"):
            certify(SCORES, LABELS, fpr <= 0.1, clusters=np.array(ids))


@pytest.mark.parametrize("name", ["groups", "prevalence", "amounts"])
def test_several_outputs_say_what_to_do_instead(name):
    given = {"groups": IDS, "prevalence": 0.1, "amounts": SCORES}
    both = np.stack([SCORES, SCORES], 1), np.stack([LABELS, LABELS], 1)
    with pytest.raises(
        ValueError,
        match=r"certify (each|every) output by itself.*the risk (1 - confidence )?divided",
    ):
        certify(*both, "fpr <= 0.1", outputs=["a", "b"], **{name: given[name]})


def test_intervals_are_of_one_kind_and_named_everywhere(capsys, tmp_path):
    """Two-sided, of the certificate's confidence: text, notebook, page, card, shell."""
    from setpoint.cli import main

    found = certify(SCORES, LABELS, "fpr <= 0.1", confidence=0.9)
    named = "two-sided 90 % interval"
    assert named in str(found)
    assert named in found._repr_html_()
    assert named in report(SCORES, LABELS, found)
    three = certify_three_way(SCORES, LABELS, "precision >= 0.8", "npv >= 0.8", confidence=0.9)
    assert str(three).count(named) == 3
    assert "interval" not in certificate_card(found)  # measured and proved values alone
    file = tmp_path / "s.csv"
    rows = zip(SCORES, LABELS.astype(int), DAYS, strict=True)
    file.write_text("\n".join(["s,y,day", *(f"{s},{y},{d}" for s, y, d in rows)]) + "\n")
    words = (
        "certify",
        file,
        "--score",
        "s",
        "--label",
        "y",
        "--goal",
        "fpr <= 0.1",
        "--by",
        "month",
    )
    main([*map(str, words), "--time", "day", "--confidence", "0.9"])
    assert f"in brackets {named}s:" in capsys.readouterr().out
