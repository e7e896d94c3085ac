"""Batches that nobody planned, and inputs that make no sense."""

import pytest
import torch
from losses.draws import BINARY, CLASSES, LOSSES, value_and_gradient
from samples import HARD_BATCHES as BATCHES

from setpoint import error, f_score, fpr
from setpoint.losses import (
    auc_loss,
    expected_f_loss,
    f_score_loss,
    independent_joint,
    multiclass_auc_loss,
    partial_auc_loss,
    precision_at_recall_loss,
    structural,
    structural_loss,
)

both_ways = pytest.mark.parametrize("weights", [None, 0.0], ids=["", "without weight"])


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", LOSSES)
@both_ways
def test_loss_and_gradient_are_finite_and_attached(name, batch, weights):
    scores, labels = BATCHES[batch]
    if name in CLASSES:
        scores = torch.stack([scores.reshape(-1), -scores.reshape(-1), 0 * scores.reshape(-1)], 1)
    keywords = {} if weights is None else {"weights": torch.full((len(scores),), weights)}
    value, gradient = value_and_gradient(LOSSES[name], scores, labels, **keywords)
    assert value.shape == ()
    assert value.isfinite()
    assert gradient.shape == scores.shape
    assert gradient.isfinite().all()
    if weights == 0 or len(set(labels.tolist())) < 2:
        assert value == 0
        assert not gradient.any()


def is_finite_or_names_the_score(loss, scores, labels):
    """Loss and gradient are finite in their precision, or the error says which score."""
    try:
        value, gradient = value_and_gradient(loss, scores, labels)
    except ValueError as error:
        largest = float(scores.abs().max())
        return scores.dtype == torch.float64 and f"the largest is {largest:.4g} in row" in str(
            error
        )
    return bool(value.isfinite()) and bool(gradient.isfinite().all())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_at_the_limits_of_a_precision_the_loss_is_finite_or_names_the_score(name, dtype):
    """Loss and gradient end at the largest number; float64, in which we count, overflows."""
    largest = torch.finfo(dtype).max
    scores = torch.tensor([-1.0, 1, -1, 1, 0.5, -0.2], dtype=dtype) * largest
    labels = torch.tensor([1, 0, 1, 0, 0, 1])
    for one in (scores, scores.sign() * largest, torch.where(labels > 0, -largest, scores)):
        if name in CLASSES:
            one = torch.stack([one, -one, 0 * one], 1)
        assert is_finite_or_names_the_score(LOSSES[name], one, labels)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers_are_named(name, value):
    scores = torch.zeros(4, 3) if name in CLASSES else torch.zeros(4)
    scores.view(4, -1)[2, 0] = value
    with pytest.raises(ValueError, match=f"Scores must be finite; got {value} in row 2"):
        LOSSES[name](scores, torch.tensor([0, 1, 1, 0]))


@pytest.mark.parametrize("name", LOSSES)
def test_only_tensors_of_floats_are_scores(name):
    labels = torch.tensor([0, 1])
    with pytest.raises(TypeError, match="must be a torch tensor; got list"):
        LOSSES[name]([[0.0], [1.0]], labels)
    with pytest.raises(TypeError, match=r"floating-point logits; got torch.int64"):
        LOSSES[name](torch.zeros(2, 3).long(), labels)


@pytest.mark.parametrize("name", BINARY)
def test_labels_and_weights_fit_the_scores(name):
    loss, scores = BINARY[name], torch.zeros(3)
    with pytest.raises(ValueError, match="Labels must be 0 or 1; got 2 in row 1"):
        loss(scores, torch.tensor([0, 2, 1]))
    with pytest.raises(ValueError, match=r"labels must be one (an|per) example"):
        loss(scores, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="weights must be one per example"):
        loss(scores, torch.tensor([0, 1, 1]), weights=torch.ones(2))
    with pytest.raises(ValueError, match=r"at least 0; got -1.0 in row 2"):
        loss(scores, torch.tensor([0, 1, 1]), weights=torch.tensor([1.0, 1, -1]))
    with pytest.raises(ValueError, match="look like classes"):
        loss(torch.zeros(3, 2), torch.tensor([0, 1, 1]))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_fit_the_scores(name):
    loss, scores = CLASSES[name], torch.zeros(3, 3)
    with pytest.raises(ValueError, match=r"whole numbers from 0 to 2.*got 3 in row 1"):
        loss(scores, torch.tensor([0, 3, 1]))
    with pytest.raises(ValueError, match=r"got 0.5 in row 0"):
        loss(scores, torch.tensor([0.5, 2, 1]))
    with pytest.raises(ValueError, match=r"labels must have the shape of the scores, \(3,\)"):
        loss(scores, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"\[n, K\] with K of at least 2"):
        loss(torch.zeros(3), torch.tensor([0, 1, 1]))
    with pytest.raises(ValueError, match="Weights must be finite"):
        loss(scores, torch.tensor([0, 1, 1]), weights=torch.tensor([1, 1, -1]))


BAD = [
    (auc_loss, {"margin": 0}, ValueError, "margin must be positive; got 0"),
    (auc_loss, {"margin": "1"}, TypeError, "margin must be a finite number"),
    (auc_loss, {"surrogate": "square"}, ValueError, "'hinge' or 'ramp'; got 'square'"),
    (partial_auc_loss, {"fpr": 0.05}, TypeError, "a range such as"),
    (partial_auc_loss, {"fpr": (0, 5)}, ValueError, "For 5 % write 0.05"),
    (partial_auc_loss, {"fpr": (0.2, 0.1)}, ValueError, "from low to high"),
    (f_score_loss, {"beta": -1}, ValueError, "beta must be positive"),
    (f_score_loss, {"threshold": "zero"}, ValueError, "a number or 'best'; got 'zero'"),
    (precision_at_recall_loss, {"recall": 95}, ValueError, "For 95 % write 0.95"),
    (precision_at_recall_loss, {"recall": 0}, ValueError, "must be above 0"),
    (
        precision_at_recall_loss,
        {"recall": 0.9, "objective": "f1"},
        ValueError,
        "'precision' or 'fpr'",
    ),
    (structural_loss, {"metric": "f1"}, TypeError, "made of rates, such as"),
    (structural_loss, {"metric": fpr.on(group=1)}, ValueError, "without slices"),
]


@pytest.mark.parametrize(("loss", "options", "kind", "message"), BAD)
def test_options_that_make_no_sense_are_refused(loss, options, kind, message):
    with pytest.raises(kind, match=message):
        loss(torch.zeros(2), torch.tensor([0, 1]), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "ovo"}, "'mu' or 'one_vs_all'; got 'ovo'"),
        ({"kind": "one_vs_all", "partition": [[0, 1], [1, 0]]}, "belongs to kind='mu'"),
        ({"partition": [[0, 1, 1], [1, 0, 1]]}, "a column for each of 2 classes; got the shape"),
        ({"partition": [[0, 1], [0, 1]]}, "does not tell classes 0 and 1 apart"),
        ({"partition": [[0, float("nan")], [1, 0]]}, "must be finite"),
    ],
)
def test_partitions_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        multiclass_auc_loss(torch.zeros(2, 2), torch.tensor([0, 1]), **options)


def test_a_table_of_mistakes_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(structural, "MOST_PAIRS", 8)
    with pytest.raises(ValueError, match="2 positives and 2 negatives have too many"):
        structural_loss(torch.zeros(4), torch.tensor([0, 1, 0, 1]), metric=error)


def test_a_table_of_mistakes_may_be_read_in_parts(monkeypatch):
    scores, labels = torch.randn(40, generator=torch.Generator().manual_seed(0)), torch.arange(40)
    whole = value_and_gradient(BINARY["structural f1"], scores, labels % 2)
    monkeypatch.setattr(structural, "PAIRS_TOGETHER", 50)
    parts = value_and_gradient(BINARY["structural f1"], scores, labels % 2)
    assert torch.equal(whole[0], parts[0])
    assert torch.equal(whole[1], parts[1])


def test_a_metric_that_errors_do_not_change_is_refused():
    from setpoint.rates import prevalence

    with pytest.raises(ValueError, match="does not change when a perfect classifier errs"):
        structural_loss(torch.zeros(2), torch.tensor([0, 1]), metric=prevalence + 0 * f_score(1))


def test_probabilities_are_probabilities():
    with pytest.raises(ValueError, match=r"between 0 and 1; got 1.5 in row 1"):
        independent_joint(torch.tensor([0.5, 1.5]))
    with pytest.raises(ValueError, match="of one example at least"):
        independent_joint(torch.empty(0))
    with pytest.raises(ValueError, match=r"a sum of 1.25"):
        expected_f_loss(torch.eye(2) / 2, 0.5)
    with pytest.raises(ValueError, match=r"must be a tensor \[n, n\]"):
        expected_f_loss(torch.zeros(2, 3), 1.0)


@pytest.mark.parametrize("p", [[0.0, 1.0, 0.5], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1e-9] * 40])
def test_expected_f_of_certain_and_of_rare_labels(p):
    p = torch.tensor(p, dtype=torch.float64, requires_grad=True)
    joint, none = independent_joint(p)
    loss = expected_f_loss(joint, none)
    (gradient,) = torch.autograd.grad(loss, p)
    assert -1e-12 <= loss < 1
    assert gradient.isfinite().all()
    assert (joint >= 0).all()


def test_the_pair_that_a_partition_does_not_tell_apart_is_named():
    partition = [[0.0, 1, 1], [1, 0, 0], [1, 1, 1]]
    with pytest.raises(ValueError, match="does not tell classes 1 and 2 apart"):
        multiclass_auc_loss(torch.zeros(3, 3), torch.arange(3), partition=partition)


@pytest.mark.parametrize("missing", [float("nan"), -1.0])
@pytest.mark.parametrize("name", BINARY)
def test_rows_without_a_label_are_absent(name, missing):
    scores, labels = torch.linspace(-1, 1, 12).double(), (torch.arange(12) % 3 > 0).double()
    value, gradient = value_and_gradient(BINARY[name], scores, labels)
    more, unknown = torch.tensor([9.0, -9.0]).double(), torch.full((2,), missing).double()
    found, slopes = value_and_gradient(
        BINARY[name], torch.cat([scores, more]), torch.cat([labels, unknown])
    )
    torch.testing.assert_close(found, value)
    torch.testing.assert_close(slopes, torch.cat([gradient, 0 * more]))
