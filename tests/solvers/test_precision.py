"""Every criterion in mixed precision, under the compiler, and inside torch's own tools."""

import shutil

import pytest
import torch
from samples import draw
from solvers.plain_kernels import plain_kernels
from subjects import CRITERIA
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import setpoint as sp
from setpoint.losses import multiclass_auc_loss
from setpoint.solvers import GlobalBatch, Split

BOUND = sp.fnr_at_fpr(0.2)
ONLY_EAGER = {
    "rate barrier": lambda model: sp.RateBarrier(BOUND, model.parameters()),
}
every_criterion = pytest.mark.parametrize("name", [*CRITERIA, *ONLY_EAGER])


def machine_code(test):
    """Slow, and not without a compiler; what torch's own modules warn of is not our concern."""
    missing = shutil.which("g++") is None
    test = pytest.mark.skipif(missing, reason="inductor needs a C++ compiler, g++")(test)
    return pytest.mark.slow(pytest.mark.filterwarnings("ignore::DeprecationWarning")(test))


def network(name, dtype=torch.float32):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)).to(dtype)
    return Split(model) if "last" in name else model


def criterion_for(name, model):
    return (CRITERIA | ONLY_EAGER)[name](model)


def batch(n=200, seed=0):
    return draw(n, seed, features=4, dtype=torch.float32)


def cosine(model, other):
    a, b = (
        torch.cat([p.grad.reshape(-1).double() for p in m.parameters()]) for m in (model, other)
    )
    return float(a @ b / (a.norm() * b.norm()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@every_criterion
def test_autocast_with_a_scaler_trains_like_single_precision(name, dtype):
    x, y = batch()
    exact = network(name)
    criterion_for(name, exact)(exact(x), y).backward()
    model = network(name)
    criterion, scaler = criterion_for(name, model), torch.amp.GradScaler("cpu", init_scale=2.0**10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with plain_kernels(), torch.autocast("cpu", dtype=dtype):
        loss = criterion(model(x), y)
    assert loss.dtype in (torch.float32, torch.float64)  # counting is never done in half
    with plain_kernels():
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert cosine(model, exact) > 0.9  # 8 bits move scores across the threshold
    before = [p.detach().clone() for p in model.parameters()]
    scaler.step(optimizer)
    scaler.update()
    assert any(not torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("name", [n for n in CRITERIA if "last" not in n])
def test_extreme_and_tied_scores_give_finite_numbers(name, dtype):
    """Half precision has few numbers: many scores are equal, and some as large as there are."""
    _, y = batch()
    r = torch.Generator().manual_seed(1)
    tied = (6 + 3 * torch.randn(200, generator=r)).to(dtype)
    largest = torch.finfo(dtype).max if dtype == torch.float16 else 1e30
    extreme = torch.where(torch.arange(200) % 3 == 0, largest, -largest).to(dtype)
    for scores in (tied, extreme, torch.zeros(200, dtype=dtype)):
        leaf = scores.clone().requires_grad_()
        loss = criterion_for(name, None)(leaf, y)
        loss.backward()
        assert loss.isfinite()
        assert leaf.grad.isfinite().all()


def test_thresholds_are_right_among_heavy_ties():
    """Logits in bfloat16: 100,000 negatives share some thousand values; a block is never split."""
    r = torch.Generator().manual_seed(2)
    scores = torch.randn(100_000, generator=r).bfloat16()
    labels = torch.zeros(100_000).bernoulli_(0.1, generator=r)
    assert len(scores.unique()) < 5000
    criterion = sp.Implicit(sp.fnr_at_fpr(0.01), share=0.0)
    criterion(scores.requires_grad_(), labels)
    negatives = scores[labels == 0]
    alarms = int((negatives > criterion.thresholds.to(torch.bfloat16)).sum())
    block = int((negatives == criterion.thresholds.to(torch.bfloat16)).sum())
    assert alarms <= 0.01 * len(negatives) < alarms + block


# the rest compile in the tests of their own rooms: it takes seconds each
COMPILED = ["implicit, memory", "program, misses", "program, f score", "program, structural"]


@pytest.mark.parametrize("name", [*COMPILED, "any loss"])
def test_the_compiler_sees_one_graph_with_the_same_gradients(name):
    check_compiled(name, "aot_eager")


@machine_code
@pytest.mark.parametrize("name", ["implicit", "lagrangian", "program, structural"])
def test_compiled_to_machine_code_the_gradients_are_the_same(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    check_compiled(name, "inductor")


@machine_code
def test_a_barrier_trains_a_compiled_model(tmp_path, monkeypatch):
    """It passes backward through the model several times, which compiled code must allow."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    (x, y), found = batch(48), []
    for wrap in (lambda model: model, lambda model: torch.compile(model, fullgraph=True)):
        model = network("rate barrier", torch.float64)
        criterion = criterion_for("rate barrier", model)
        loss = criterion(wrap(model)(x.double()), y)
        loss.backward()
        found.append([loss.detach(), [p.grad for p in model.parameters()], criterion.stats()])
    assert_close(*(one[:2] for one in found), rtol=1e-9, atol=1e-12)
    assert found[0][2]["binding"] == found[1][2]["binding"]


def check_compiled(name, backend):
    torch._dynamo.reset()  # shapes that other tests compiled for
    x, y = batch(48)
    models = [network(name, torch.float64) for _ in range(2)]
    eager, compiled = (criterion_for(name, model) for model in models)
    run = torch.compile(compiled, fullgraph=True, backend=backend)
    for _ in range(2):  # with state of the first step in the second
        found = []
        for criterion, model in zip((eager, run), models, strict=True):
            model.zero_grad()
            leaf = model(x.double()).detach().requires_grad_()  # scores, or features of a split
            loss = criterion(leaf, y)
            loss.backward()
            heads = [p.grad for p in model.parameters() if p.grad is not None]
            found.append([loss.detach(), leaf.grad, heads])
        assert_close(*found, rtol=1e-8, atol=1e-11)
    assert_close(eager.state_dict(), compiled.state_dict(), rtol=1e-9, atol=1e-12, equal_nan=True)


@every_criterion
def test_gradient_checkpointing_changes_nothing(name):
    x, y = batch()
    models = [network(name, torch.float64) for _ in range(2)]
    for model, kept in zip(models, (True, False), strict=True):
        criterion = criterion_for(name, model)
        leaf = x.double().requires_grad_()
        out = model(leaf) if kept else checkpoint(model, leaf, use_reentrant=False)
        criterion(out, y).backward()
    assert_close(*([p.grad for p in m.parameters()] for m in models), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [n for n in CRITERIA if "last" not in n])
def test_functional_calls_and_gradients_by_a_dict_of_weights(name):
    x, y = batch()
    model = network(name, torch.float64)
    weights = {n: p.detach() for n, p in model.named_parameters()}

    def loss(weights):
        scores = torch.func.functional_call(model, weights, (x.double(),))
        return criterion_for(name, model)(scores, y)

    leaves = {n: p.clone().requires_grad_() for n, p in weights.items()}
    found = torch.autograd.grad(loss(leaves), list(leaves.values()))
    criterion_for(name, model)(model(x.double()), y).backward()
    assert_close(list(found), [p.grad for p in model.parameters()], rtol=1e-12, atol=1e-14)


def test_classes_in_mixed_precision():
    r = torch.Generator().manual_seed(0)
    scores = torch.randn(90, 3, generator=r).bfloat16().requires_grad_()
    loss = GlobalBatch(multiclass_auc_loss)(scores, torch.arange(90) % 3)
    loss.backward()
    assert loss.dtype == torch.float32
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bits_are_read_as_they_are(kind):
    """Scores of eight bits give the loss of the same numbers in single precision."""
    scores = torch.linspace(-2, 2, 24).to(getattr(torch, kind))
    labels = torch.arange(24) % 2
    for make in (
        lambda: sp.Implicit(sp.fnr_at_fpr(0.2)),
        sp.CrossEntropy,
        lambda: sp.Pairwise(sp.roc_auc()),
        lambda: sp.Program(sp.roc_auc()),
        lambda: sp.Lagrangian(sp.fnr_at_fpr(0.2)),
    ):
        assert_close(make()(scores, labels), make()(scores.float(), labels))
