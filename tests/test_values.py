"""Values that are odd: what is no number is refused in a line, extreme numbers are handled.

The sentences of what a user may rely on, one test each; more cases in ``tests/attacks``.
"""

import contextlib
import warnings

import numpy as np
import pytest
import torch
from attacks.arrays import ON_SCORES
from subjects import CRITERIA

import setpoint as sp
from setpoint.certificates import Certificate, certify
from setpoint.certificates.labelling import label_plan
from setpoint.estimators import CertifiedThreshold, Classifier, Ranker
from setpoint.export import Decision, to_program

RNG = np.random.default_rng(0)
LABELS = (RNG.random(400) < 0.3).astype(int)
SCORES = RNG.normal(size=400) + 2 * LABELS
FEATURES = np.stack([SCORES, RNG.normal(size=400)], 1)
GROUPS = np.where(np.arange(400) % 2, "a", "b")
SEVENTH = np.arange(400) == 7
GOAL = "maximize recall subject to fpr <= 0.1"
FOUND = certify(SCORES, LABELS, "fpr <= 0.1")


def masked(values):
    """The same with row 7 masked."""
    return np.ma.masked_array(
        values, SEVENTH if np.ndim(values) == 1 else np.stack([SEVENTH] * 2).T
    )


def classifier(**options):
    return Classifier(GOAL, model="linear", epochs=2, random_state=0, **options)


MASKED = {
    "scores": lambda: certify(masked(SCORES), LABELS, "fpr <= 0.1"),
    "labels": lambda: certify(SCORES, masked(LABELS), "fpr <= 0.1"),
    "groups": lambda: certify(SCORES, LABELS, "fpr <= 0.3", groups=masked(GROUPS)),
    "clusters": lambda: certify(SCORES, LABELS, "fpr <= 0.3", clusters=masked(np.arange(400))),
    "amounts": lambda: certify(
        SCORES, LABELS, "cost(miss=1, false_alarm=5) <= 0.9", amounts=masked(1 + LABELS)
    ),
    "decide": lambda: FOUND.decide(masked(SCORES)),
    "check": lambda: FOUND.check(masked(SCORES), LABELS),
    "monitor": lambda: FOUND.monitor().update(masked(SCORES), LABELS),
    "times": lambda: certify(SCORES, LABELS, "fpr <= 0.1", times=masked(np.arange(400))),
    "evaluate": lambda: sp.fnr_at_fpr(0.1).evaluate(masked(SCORES), LABELS),
    "choose": lambda: sp.fnr_at_fpr(0.1).choose(SCORES, masked(LABELS)),
    "weights": lambda: sp.fnr_at_fpr(0.1).evaluate(SCORES, LABELS, weights=masked(1.0 + LABELS)),
    "fit X": lambda: classifier().fit(masked(FEATURES), LABELS),
    "fit y": lambda: classifier().fit(FEATURES, masked(LABELS)),
    "fit weights": lambda: classifier().fit(FEATURES, LABELS, sample_weight=masked(1.0 + LABELS)),
    "ranker": lambda: Ranker("maximize ndcg(5)").fit(masked(FEATURES), LABELS, qid=LABELS),
    "certified threshold": lambda: CertifiedThreshold(classifier(), goal=GOAL).fit(
        masked(FEATURES), LABELS
    ),
}


@pytest.mark.parametrize("what", MASKED)
def test_masked_entries_are_refused_with_their_row(what):
    with pytest.raises(TypeError, match="has masked entries, the first in row 7: leave"):
        MASKED[what]()


def test_predict_refuses_masked_entries():
    fitted = classifier().fit(FEATURES, LABELS)
    with pytest.raises(TypeError, match="X has masked entries"):
        fitted.predict(masked(FEATURES))
    unmasked = np.ma.masked_array(FEATURES)
    assert (fitted.predict(unmasked) == fitted.predict(FEATURES)).all()


def quantized(values):
    """Numbers in eight bits, as quantized networks give them; torch says that they will go."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.tensor(values).float(), 0.1, 0, torch.qint8)


NO_NUMBERS = {
    "complex": (SCORES.astype(complex), "real numbers; got values of the type complex128"),
    "complex tensor": (torch.tensor(SCORES).to(torch.complex64), "real numbers; got values of the"),
    "datetime": (np.arange(400).astype("datetime64[s]"), "got values of the type datetime64"),
    "structured": (np.zeros(400, [("a", float)]), r"real numbers; got values of the type \[\('a'"),
    "meta": (torch.empty(400, device="meta"), "a dense tensor with data; got a meta tensor"),
    "sparse": (
        torch.tensor(SCORES).to_sparse(),
        "a dense tensor with data; got a torch.sparse_coo",
    ),
    "quantized": (quantized(SCORES), "a quantized tensor: call its dequantize"),
    "nested": (
        torch.nested.nested_tensor([torch.tensor(SCORES)], layout=torch.jagged),
        "a nested tensor: call its to_padded",
    ),
    "huge": ([10**400] * 400, r"numbers; got \[1000"),
}
CALLS = {
    "certify": lambda values: certify(values, LABELS, "fpr <= 0.1"),
    "decide": lambda values: FOUND.decide(values),
    "evaluate": lambda values: sp.fnr_at_fpr(0.1).evaluate(values, LABELS),
    "monitor": lambda values: FOUND.monitor().update(values, LABELS),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_refused_in_a_line(kind, call):
    values, message = NO_NUMBERS[kind]
    with pytest.raises(TypeError, match=f"scores must be .*{message}"):
        CALLS[call](values)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_float8_is_read_exactly(dtype):
    scores = torch.tensor(SCORES).to(dtype)
    found = certify(scores, LABELS, "fpr <= 0.1")
    assert found.threshold == certify(scores.double(), LABELS, "fpr <= 0.1").threshold
    assert (found.decide(scores) == found.decide(scores.double())).all()


@pytest.mark.parametrize("name", ON_SCORES)
def test_arrays_and_odd_tensors_into_a_criterion_say_what_to_do(name):
    labels = torch.tensor(LABELS)
    with pytest.raises(TypeError, match=r"Write torch.as_tensor\(scores\), or judge arrays by"):
        CRITERIA[name](None)(SCORES, labels)
    for kind in ("meta", "sparse", "quantized", "nested"):
        with pytest.raises(TypeError, match="Scores must be a dense tensor with data"):
            CRITERIA[name](None)(NO_NUMBERS[kind][0], labels)
        with pytest.raises(TypeError, match="Labels must be a dense tensor with data"):
            CRITERIA[name](None)(torch.tensor(SCORES), NO_NUMBERS[kind][0])
    with pytest.raises(TypeError, match="Labels must be real numbers"):
        CRITERIA[name](None)(torch.tensor(SCORES), labels.to(torch.complex64))
    with pytest.raises(
        TypeError, match=r"Scores must be floating-point logits; got torch\.complex64"
    ):
        CRITERIA[name](None)(NO_NUMBERS["complex tensor"][0], labels)


# ---- small and large numbers ---------------------------------------------------------------------
def probabilities(count, seed=0):
    """Labels, and probabilities of a rare class most of which are subnormal in float16."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(count) < 0.2).astype(int)
    logits = rng.normal(size=count) - 11 + 7 * labels
    return labels, 1 / (1 + np.exp(-logits))


def test_a_floor_is_as_good_in_float16_as_in_float32_up_to_its_resolution():
    """Where float16 has one number for several of float32, its threshold is the next one below."""
    labels, exact = probabilities(20_000)
    assert (exact < np.finfo(np.float16).tiny).mean() > 0.5
    rates = {}
    for dtype in (np.float16, np.float32):
        scores = exact.astype(dtype)
        found = certify(scores, labels, "minimize fpr subject to recall >= 0.95")
        accepted = np.asarray(found.decide(scores))
        assert accepted[labels == 1].mean() >= 0.95
        rates[dtype] = accepted[labels == 0].mean()
        held = sp.Problem.parse("minimize fpr subject to recall >= 0.95").choose(scores, labels)
        assert held.value <= rates[dtype]
    assert rates[np.float32] < 0.01
    assert rates[np.float16] <= rates[np.float32] + 0.005


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_subnormal_scores_are_decided_as_any_others(dtype):
    """Scores that are whole multiples of the least subnormal number, and the whole numbers."""
    rng = np.random.default_rng(1)
    labels = (rng.random(4000) < 0.5).astype(int)
    steps = rng.integers(1, 400, 4000) + 300 * labels
    scores = (steps * np.finfo(dtype).smallest_subnormal).astype(dtype)
    for goal in ("recall >= 0.9", "fpr <= 0.1"):
        found, plain = certify(scores, labels, goal), certify(steps.astype(float), labels, goal)
        accepted = np.asarray(found.decide(scores))
        assert (accepted == np.asarray(plain.decide(steps.astype(float)))).all()
        assert 0.2 < accepted.mean() < 0.8


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.7e308])
def test_features_of_any_finite_scale_train(scale):
    largest = np.abs(FEATURES).max() if scale == 1.7e308 else 1.0
    fitted = classifier().fit(FEATURES / largest * scale, LABELS)
    usual = classifier().fit(FEATURES, LABELS)
    decided = fitted.predict(FEATURES / largest * scale)
    assert 0 < decided.mean() < 1
    assert (decided != usual.predict(FEATURES)).mean() < 0.1


def test_one_class_everywhere_is_said():
    """Scores that tell nothing: what is certified accepts nobody, or everybody, and says so."""
    noise = np.zeros(3000)
    labels = np.arange(3000) % 2
    for goal, words in (("fpr <= 0.1", "accepts nobody"), ("recall >= 0.9", "accepts all")):
        found = certify(noise, labels, goal)
        decided = np.asarray(found.decide(noise))
        assert decided.all() or not decided.any()
        assert words in str(found)
    constant = classifier().fit(np.ones((3000, 2)), labels)
    assert len(set(constant.predict(np.ones((9, 2))).tolist())) == 1
    assert "accepts nobody" in constant.certificate_.verdict


def test_a_decision_refuses_nan_and_exported_graphs_reject_it():
    decision = Decision(torch.nn.Identity(), FOUND)
    odd = torch.tensor([0.0, float("nan"), 9.0], dtype=torch.float64)
    for value in ("nan", "inf", "-inf"):
        odd[1] = float(value)
        with pytest.raises(ValueError, match=f"Scores must be finite; got {value} in row 1"):
            decision(odd)
    odd[1] = float("nan")
    program = to_program(decision, torch.zeros(5, dtype=torch.float64))
    accepted, scores = program.module()(odd)
    assert accepted.tolist() == [False, False, True]
    assert scores[1].isnan()
    assert "there NaN is never accepted" in " ".join(Decision.__doc__.split())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_certificates_at_the_limits_of_their_precision_read_back(dtype):
    limits = np.finfo(dtype)
    for low, high in ((limits.min, limits.max), (limits.min, 0), (0, limits.max)):
        scores = np.where(LABELS == 1, high, low).astype(dtype)
        for goal in ("fpr <= 0.1", "recall >= 0.9"):
            found = certify(scores, LABELS, goal)
            again = Certificate.from_json(found.to_json())
            assert again == found
            assert (np.asarray(again.decide(scores)) == np.asarray(found.decide(scores))).all()


@pytest.mark.parametrize("size", [1e155, 1e300, 1.7e308, 1e-310])
@pytest.mark.parametrize("name", ON_SCORES)
def test_extreme_scores_are_finite_or_named_and_the_next_batch_is_as_ever(name, size):
    criterion, fresh = CRITERIA[name](None), CRITERIA[name](None)
    labels, usual = torch.tensor(LABELS), torch.tensor(SCORES)
    extreme = (torch.sign(usual) * size).requires_grad_()
    with contextlib.suppress(ValueError):
        loss = criterion(extreme, labels)
        loss.backward()
        assert loss.isfinite()
        assert extreme.grad.isfinite().all()
    if extreme.grad is None:
        with pytest.raises(
            ValueError, match=rf"the largest is {size:g} in row".replace("+", r"\+")
        ):
            criterion(extreme, labels)
    again = usual.clone().requires_grad_()
    loss = criterion(again, labels)
    loss.backward()
    assert loss.isfinite()
    assert again.grad.isfinite().all()
    assert "nan" not in str(getattr(criterion, "status", ""))
    if name in ("pairwise", "program", "program, f score", "cross entropy"):  # without a state
        assert loss == fresh(usual, labels)


@pytest.mark.parametrize(("label", "shown"), [(2.0, "2"), (0.3, "0.3"), (np.inf, "inf")])
@pytest.mark.parametrize("name", ON_SCORES)
def test_a_wrong_label_is_told_as_it_was_given(name, label, shown):
    labels = torch.tensor(LABELS, dtype=torch.float64)
    labels[5] = label
    with pytest.raises(ValueError, match=f"Labels must be 0 or 1; got {shown} in row 5"):
        CRITERIA[name](None)(torch.tensor(SCORES), labels)


@pytest.mark.parametrize("rate", ["jaccard", "balanced_error", "lift", "precision", "f_score(1)"])
@pytest.mark.parametrize("rows", [2, 3, 5, 8])
def test_no_nan_is_printed_of_tiny_groups(rate, rows):
    sign = "<=" if rate == "balanced_error" else ">="
    scores, labels = SCORES[:rows], np.arange(rows) % 2
    groups = {"g": GROUPS[:rows]}
    for goal in (f"{rate} {sign} 0.5", f'{rate} on g="a" {sign} 0.5'):
        try:
            found = certify(scores, labels, goal, groups=groups, confidence=0.5)
        except ValueError:
            continue
        assert "nan" not in str(found).replace("inance", "")


def test_a_plan_refuses_masked_labels():
    plan = label_plan(SCORES, "fpr <= 0.1")
    with pytest.raises(TypeError, match="labels has masked entries"):
        certify(SCORES, masked(LABELS.astype(float)), "fpr <= 0.1", plan=plan)
