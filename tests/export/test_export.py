"""A decision is the same wherever it is made."""

import numpy as np
import pytest
import torch
from torch import nn

from setpoint import Certificate, Classifier, Decision, certify
from setpoint.certificates import certify_three_way, row_numbers
from setpoint.export import load_decision, save_decision, to_onnx, to_program
from setpoint.train.stacking import Stacked

MANY = 100_000


class Sum(nn.Module):
    """Scores with many ties: sums of a few whole numbers, in the precision asked for."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))
        self.dtype = dtype

    def forward(self, x):
        return (x * self.weight).sum(-1).to(self.dtype)


def rows(n=MANY, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, 6, (n, 3), generator=g).float()


@torch.no_grad()
def made(dtype=torch.float32, goal="fpr <= 0.1", groups=None):
    model = Sum(dtype)
    x = rows(5000, seed=1)
    scores = model(x)
    labels = scores.float() + torch.randn(5000, generator=torch.Generator().manual_seed(2)) > 2
    options = {} if groups is None else {"groups": groups}
    return model, certify(scores, labels, goal, **options)


def by_group():
    model = Sum()
    r = np.random.default_rng(0)
    with torch.no_grad():
        scores = model(rows(5000, seed=1)).numpy()
    sex = r.choice(["a", "b"], 5000)
    labels = scores + r.normal(size=5000) > np.where(sex == "a", 1.5, 2.5)
    return model, scores, labels, sex


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_it_decides_as_the_certificate_does(dtype):
    model, certificate = made(dtype)
    decision = Decision(model, certificate)
    with torch.no_grad():
        decided, scores = decision(rows())
    assert decision.thresholds.dtype == scores.dtype == dtype
    assert (scores == decision.thresholds).sum() + len(scores.unique()) > 2  # ties there are
    assert torch.equal(decided, certificate.decide(scores))
    assert 0 < decided.sum() < MANY


def test_scores_in_a_column_are_taken():
    model, certificate = made()
    column = nn.Sequential(model, nn.Unflatten(0, (-1, 1)))
    x = rows(50)
    assert torch.equal(Decision(column, certificate)(x)[0], Decision(model, certificate)(x)[0])


def test_a_cast_changes_the_weights_but_never_the_precision_of_the_promise():
    model, certificate = made()
    exact = Decision(model, certificate).thresholds.clone()
    for cast in (Decision(model, certificate).half(), Decision(model, certificate).double()):
        assert cast.thresholds.dtype == torch.float32
        assert torch.equal(cast.thresholds, exact)
    assert Decision(model, certificate).half().model.weight.dtype == torch.float16


def test_an_exported_program_decides_the_same_for_any_batch():
    model, certificate = made()
    decision = Decision(model, certificate)
    program = to_program(decision, rows(4)).module()
    for n in (1, 2, 1000):
        x = rows(n, seed=n)
        assert torch.equal(program(x)[0], decision(x)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_onnx_decides_the_same_100_000_times(tmp_path, dtype):
    import onnxruntime

    model, certificate = made(dtype)
    decision = Decision(model, certificate)
    to_onnx(decision, rows(4), tmp_path / "decision.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "decision.onnx"))
    x = rows()
    decided, scores = session.run(["decisions", "scores"], {"x": x.numpy()})
    with torch.no_grad():
        expected, exact = decision(x)
    assert scores.dtype == exact.numpy().dtype
    assert (decided != expected.numpy()).sum() == 0
    assert len(session.run(None, {"x": x[:1].numpy()})[0]) == 1


def test_groups_have_their_own_thresholds_here_and_in_onnx(tmp_path):
    import onnxruntime

    model, scores, labels, sex = by_group()
    certificate = certify(scores, labels, "fpr <= 0.1", groups={"sex": sex})
    decision = Decision(model, certificate)
    x = rows(5000, seed=1)
    places = torch.tensor([decision.groups.index(s) for s in sex.tolist()])
    with torch.no_grad():
        decided, _ = decision(x, places)
    assert torch.equal(decided, torch.as_tensor(certificate.decide(scores, sex)))
    assert len(decision.thresholds.unique()) == 2
    to_onnx(decision, x[:4], tmp_path / "groups.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "groups.onnx"))
    found = session.run(["decisions"], {"x": x.numpy(), "groups": places.numpy()})[0]
    assert (found == decided.numpy()).all()
    with pytest.raises(ValueError, match="one threshold for each sex: pass groups="):
        decision(x)
    strangers = torch.where(torch.arange(5000) % 2 == 0, -1, 2)
    found = session.run(["decisions"], {"x": 99 + x.numpy(), "groups": strangers.numpy()})[0]
    assert not found.any()  # a graph cannot refuse: nobody unknown is accepted
    for wrong in (strangers, places[:1], places > 0, places.float(), sex.tolist()):
        with pytest.raises(ValueError, match=r"was not certified|must be a tensor of 5000 whole"):
            decision(x, wrong)


def test_exporting_leaves_the_mode_of_the_model(tmp_path):
    model, certificate = made()
    decision = Decision(model, certificate).train()
    to_program(decision, rows(4, seed=0))
    to_onnx(decision, rows(4, seed=0), tmp_path / "decision.onnx")
    assert model.training


def test_another_threshold_is_not_loaded():
    model, certificate = made()
    decision = Decision(model, certificate)
    state = decision.state_dict()
    decision.load_state_dict(state)
    with pytest.raises(ValueError, match="not the certificate's"):
        decision.load_state_dict({**state, "thresholds": state["thresholds"] - 1})


def test_saved_and_loaded_with_its_certificate(tmp_path):
    model, certificate = made()
    decision, file = Decision(model, certificate), tmp_path / "decision.safetensors"
    save_decision(decision, file)
    fresh = Sum()
    nn.init.zeros_(fresh.weight)
    again = load_decision(file, fresh)
    assert again.certificate == certificate
    assert torch.equal(again(rows(500))[0], decision(rows(500))[0])
    assert not again.training
    assert b"pickle" not in file.read_bytes()


def tampered(tmp_path, how):
    from safetensors.torch import load_file, save_file

    model, certificate = made()
    file = tmp_path / "decision.safetensors"
    save_decision(Decision(model, certificate), file)
    if how == "cut":
        file.write_bytes(file.read_bytes()[:-7])
        return file
    tensors = load_file(str(file))
    metadata = {"setpoint_certificate": certificate.to_json()}
    if how == "threshold":
        tensors["thresholds"] = tensors["thresholds"] - 1
    if how == "promise":
        metadata["setpoint_certificate"] = certificate.to_json().replace("0.1", "0.2")
    if how == "none":
        metadata = {}
    if how == "weights":
        tensors["model.weight"] = torch.zeros(4)
    save_file(tensors, str(file), metadata=metadata)
    return file


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("cut", "damaged"),
        ("threshold", "not the one its certificate promises"),
        ("promise", "certificate"),
        ("none", "no certificate in it"),
        ("weights", "do not fit this model"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path, how, words):
    with pytest.raises(ValueError, match=words):
        load_decision(tampered(tmp_path, how), Sum())


def test_what_is_refused():
    model, certificate = made()
    with pytest.raises(TypeError, match="certificate that certify"):
        Decision(model, 0.3)
    with pytest.raises(TypeError, match=r"nn\.Module and its certificate"):
        Decision(certificate, certificate)
    with pytest.raises(ValueError, match="one threshold for everyone"):
        Decision(model, certificate)(rows(3), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="gives 3 scores an example"):
        Decision(nn.Identity(), certificate)(rows(3))
    with pytest.raises(ValueError, match="at least two examples"):
        to_program(Decision(model, certificate), rows(1))
    few = certify(torch.arange(20.0), torch.arange(20) > 9, "fpr <= 0.0001")
    with pytest.raises(ValueError, match="There is no threshold"):
        Decision(model, few)


def test_it_prints_its_promise():
    model, certificate = made()
    assert "fpr <= 0.1, threshold=" in repr(Decision(model, certificate))
    assert isinstance(certificate, Certificate)


@pytest.mark.parametrize("grouped", [False, True])
def test_ties_broken_by_lot_here_and_in_onnx(tmp_path, grouped):
    import onnxruntime

    model, scores, labels, sex = by_group()
    groups, ids = ({"sex": sex} if grouped else None), [f"row {i}" for i in range(5000)]
    certificate = certify(scores, labels, "fpr <= 0.1", groups=groups, ties="lot", ids=ids)
    decision, x, numbers = Decision(model, certificate), rows(5000, seed=1), row_numbers(ids)
    places = torch.tensor([decision.groups.index(s) for s in sex.tolist()]) if grouped else None
    with torch.no_grad():
        decided, seen = decision(x, places, torch.tensor(numbers))
    assert (decided & (seen == decision.thresholds.min())).any()  # equal, and accepted
    expected = certificate.decide(scores, *((sex,) if grouped else ()), ids=ids)
    assert (decided.numpy() == expected).all()
    to_onnx(decision, x[:4], tmp_path / "lots.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "lots.onnx"))
    given = {"x": x.numpy(), "ids": numbers} | ({"groups": places.numpy()} if grouped else {})
    assert (session.run(["decisions"], given)[0] == expected).all()
    save_decision(decision.half(), tmp_path / "d.safetensors")
    with pytest.raises(ValueError, match="pass ids="):
        load_decision(tmp_path / "d.safetensors", Sum())(x, places)


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_trained_classifier_is_exported_for_any_batch(model, tmp_path):
    import onnxruntime

    random = np.random.default_rng(0)
    y = random.random(1000) < 0.3
    x = random.normal(size=(1000, 3)) + 2 * y[:, None]
    fitted = Classifier("fpr <= 0.1", model=model, epochs=1, random_state=0).fit(x, y)
    summed = Stacked({"a": fitted.module_, "b": fitted.module_}, [0.5, 0.5], [0.0])
    rows = torch.from_numpy(x)
    for module in (fitted.module_, summed):
        decision = Decision(module, fitted.certificate_)
        decided, _ = to_program(decision, rows[:4]).module()(rows)
        assert (decided.numpy() == (fitted.predict(x) == 1)).all()
    to_onnx(Decision(fitted.module_, fitted.certificate_), rows[:4], tmp_path / "d.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "d.onnx"))
    assert (session.run(["decisions"], {"x": x})[0] == (fitted.predict(x) == 1)).all()


def test_three_ways_here_and_in_onnx(tmp_path):
    import onnxruntime

    random = np.random.default_rng(0)
    labels = random.random(20_000) < 0.2
    scores = random.normal(size=20_000) + 4 * labels
    certificate = certify_three_way(scores, labels, "precision >= 0.99", "npv >= 0.99")
    decision = Decision(nn.Flatten(0), certificate)
    x = torch.linspace(-3, 9, 1000, dtype=torch.float64)[:, None]
    decided, _ = decision(x)
    words = np.array(["reject", "review", "accept"])
    assert words[decided].tolist() == certificate.decide(x[:, 0].numpy()).tolist()
    assert decided.unique().tolist() == [0, 1, 2]
    to_onnx(decision, x[:4], tmp_path / "three.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "three.onnx"))
    assert (session.run(["decisions"], {"x": x.numpy()})[0] == decided.numpy()).all()
    save_decision(decision, tmp_path / "d.safetensors")
    again = load_decision(tmp_path / "d.safetensors", nn.Flatten(0))
    assert torch.equal(again(x)[0], decided)
    unproved = certify_three_way(scores[:50], labels[:50], "precision >= 0.99", "npv >= 0.99")
    with pytest.raises(ValueError, match="no thresholds"):
        Decision(nn.Flatten(0), unproved)


def test_several_outputs_have_a_threshold_each_or_are_never_accepted(tmp_path):
    random = np.random.default_rng(0)
    labels = random.random((3000, 3)) < [0.3, 0.3, 0.99]  # 30 negatives of the last: no proof
    scores = torch.tensor(random.normal(size=(3000, 3)) + 2 * labels)
    certificate = certify(scores, labels, "fpr <= 0.05", outputs=["a", "b", "c"])
    decision = Decision(nn.Identity(), certificate)
    decided, _ = decision(scores)
    assert decision.outputs == ("a", "b", "c")
    assert decided.any(0).tolist() == [True, True, False]
    assert torch.equal(decided, certificate.decide(scores))
    save_decision(decision, tmp_path / "d.safetensors")
    again = load_decision(tmp_path / "d.safetensors", nn.Identity())
    assert torch.equal(again(scores)[0], decided)
