import numpy as np
import pytest
from certificates.simulate import sample

import setpoint as sp
from setpoint.certificates import CannotPromise, certify
from setpoint.rates import prevalence

SCORES, LABELS = sample(0, 600, 0.3)
CAP = sp.fpr <= 0.1


def refused(message, *given, error=ValueError, **options):
    arguments = given or (SCORES, LABELS, CAP)
    with pytest.raises(error, match=message):
        certify(*arguments, **options)


def test_weights_are_refused_with_the_reason():
    refused("weighted counts do not follow the binomial law", weights=np.ones(600))


def test_some_doubt_must_be_left():
    refused("leave some doubt, 1e-12 at least; got 0.99999", confidence=1 - 1e-15)
    assert certify(SCORES, LABELS, sp.fpr <= 0.5, confidence=1 - 1e-9).certified


def test_copies_are_refused():
    twice = np.concatenate([SCORES, SCORES]), np.concatenate([LABELS, LABELS])
    refused("Every score of the positives appears 2 times", *twice, CAP)
    only = (
        np.concatenate([SCORES, *[SCORES[LABELS]] * 2]),
        np.append(LABELS, np.ones(2 * LABELS.sum())),
    )
    refused("Every score of the positives appears 3 times", *only, CAP)


def test_what_looks_like_oversampling_is_pointed_out():
    random = np.random.default_rng(0)
    more = random.choice(SCORES[LABELS], 400)
    found = certify(np.append(SCORES, more), np.append(LABELS, np.ones(400)), CAP)
    assert any("of the positives share their score" in note for note in found.notes)
    tied = certify(np.round(SCORES, 1), LABELS, CAP)
    assert not any("share their score" in note for note in tied.notes)
    few = certify(np.repeat([0.0, 1.0], 100), np.repeat([0, 1], 100), CAP)  # two scores only
    assert few.certified


def test_copies_of_most_rows_are_pointed_out_and_steps_are_not():
    rows = np.r_[np.repeat(np.arange(540), 3), np.arange(540, 600)]
    found = certify(SCORES[rows], LABELS[rows], CAP)
    assert any("if rows are copies, the certificate is void" in note for note in found.notes)
    for scores in (SCORES, np.round(SCORES * 4) / 4):
        notes = certify(scores, LABELS, CAP).notes
        assert not any("copies" in note for note in notes)


@pytest.mark.parametrize(
    ("goal", "labels", "message"),
    [
        (
            CAP,
            np.ones(600),
            "counts negatives, and there are none: the data to certify on have 600 positives",
        ),
        (sp.recall >= 0.9, np.zeros(600), "counts positives, and there are none"),
        (sp.precision >= 0.9, np.ones(600), "counts negatives, and there are none"),
        (sp.Problem(minimize=sp.fnr, subject_to=CAP), np.zeros(600), "counts positives"),
        (CAP, None, "counts positives and negatives: pass labels"),
        (CAP, np.full(600, 2), "Labels must be 0 or 1; got 2 in row 0"),
        (CAP, np.full(600, np.nan), "No row has a label: all are NaN or -1"),
        (CAP, 2.0 * LABELS - 1, "got -1 in row .* If -1 marks negatives, pass labels > 0"),
        (CAP, LABELS[:9], "labels must have the shape of the scores"),
    ],
)
def test_labels_must_fit_the_goal(goal, labels, message):
    refused(message, SCORES, labels, goal)


def test_labels_must_be_numbers():
    refused("labels must be 0 or 1", SCORES, ["yes"] * 600, CAP, error=TypeError)


def test_scores_are_checked():
    bad = SCORES.copy()
    bad[17] = np.nan
    refused("got nan in row 17", bad, LABELS, CAP)
    refused("outputs are named: outputs=", np.stack([SCORES, SCORES], 1), LABELS, CAP)
    refused("no scores", [], [], CAP)


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        (sp.fpr.at(0.1), "an exact value cannot be proved"),
        (sp.precision_at_k(10), "counts examples; what is proved for new data is about shares"),
        (sp.roc_auc(), "certify proves bounds at one threshold, and an area"),
    ],
    ids=str,
)
def test_what_is_no_bound_on_a_share_cannot_be_promised(goal, why):
    refused(why, SCORES, LABELS, goal, error=CannotPromise)


@pytest.mark.parametrize("goal", [0.1, sp.fpr, [CAP, "recall >= 0.9"]], ids=str)
def test_only_bounds_can_be_promised(goal):
    refused("bounds look like", SCORES, LABELS, goal, error=TypeError)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ([], "has no bound"),
        (sp.Problem(maximize=sp.f_score(1)), "has no bound that could be certified"),
        (sp.alerts <= 100, "counts examples"),
        (prevalence <= 0.5, "does not depend on the threshold"),
        (sp.fpr <= 1, "holds for every threshold"),
        ("fpr < 0.1", "written <= and >="),
        ("", "Known rates|starts with|Expected"),
    ],
    ids=str,
)
def test_goals_must_make_sense(goal, message):
    refused(message, SCORES, LABELS, goal)


def test_an_error_in_a_sentence_points_at_the_word():
    with pytest.raises(ValueError, match="fpt") as caught:
        certify(SCORES, LABELS, "recall >= 0.5 and fpt <= 0.1")
    _, line, marks = str(caught.value).split("\n")
    assert line == "  recall >= 0.5 and fpt <= 0.1"
    assert line[marks.index("^") : marks.rindex("^") + 1] == "fpt"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 95}, "For 95 % write 0.95"),
        ({"confidence": 1.0}, "ends excluded"),
        ({"candidates": 0}, "candidates must be a whole number"),
        ({"guarantee": "sure"}, 'must be "pac" or "mean"'),
        ({"guarantee": "mean", "candidates": 3}, "does not survive choosing"),
        ({"prevalence": 0.0}, "prevalence must be a share"),
    ],
)
def test_settings_are_checked(options, message):
    refused(message, **options)


def test_settings_that_contradict_the_goal():
    refused("needs labels", SCORES, None, sp.coverage <= 0.1, prevalence=0.1)
    refused(
        "slices have their own",
        *(SCORES, LABELS, sp.precision.on(group=1) >= 0.5),
        groups=np.ones(600),
        prevalence=0.1,
    )
    for goal in ([CAP, sp.recall >= 0.5], sp.precision >= 0.5, sp.f_score(1) >= 0.5):
        refused("pull the threshold one way", SCORES, LABELS, goal, guarantee="mean")
    refused(
        "one kind of examples",
        *(SCORES, LABELS, 0.5 * sp.fpr + 0.5 * sp.coverage <= 0.2),
        guarantee="mean",
    )


def test_bounds_on_several_parts_say_what_is_missing():
    found = certify(SCORES[:60], LABELS[:60], 0.5 * sp.fpr + 0.5 * sp.coverage <= 0.01)
    assert found.status == "infeasible"
    assert "times what you have" in found.notes[0]
    assert certify(SCORES, LABELS, sp.balanced_error <= 0.01).status == "not certified"
