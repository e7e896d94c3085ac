"""The law: W processes give the loss, gradients, thresholds and state of one on the whole batch."""

import pytest
import torch
import torch.distributed as dist
from distributed import alone
from distributed.cases import CASES, ROWS, batch_of
from distributed.fleet import run_fleet
from filelock import FileLock
from subjects import network, rows_of
from torch.nn.parallel import DistributedDataParallel

SHARES = {
    1: [(ROWS,)] * 3,
    2: [(40, 24), (64, 0), (1, 63)],  # a rank without rows, and ranks without positives
    4: [(0, 20, 30, 14), (16, 16, 16, 16), (61, 0, 1, 2)],
}
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-6}
SMALL = 1e-2
"""What is smaller in a step is compared by its difference, not by the share of it."""


def train(case, dtype, rank=0, size=1, group=None):
    """Losses, gradients and state of some steps, on one rank of ``size``."""
    model = network(case, dtype)
    criterion, called = case.make(model), model
    if size > 1:
        called = DistributedDataParallel(model, process_group=group)
        criterion.attach(called)
    found = {}
    for step, sizes in enumerate(SHARES[size]):
        x, y, more = batch_of(case, step, dtype)
        part = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
        loss = criterion(called(x[part]), rows_of(y, part), **rows_of(more, part))
        model.zero_grad()
        loss.backward()
        found[step, "loss", ""] = loss.detach()
        for name, parameter in model.named_parameters():
            found[step, "gradient", name] = parameter.grad.clone()
        for name, buffer in criterion.state_dict().items():
            found[step, name, ""] = buffer.clone().double()
        move(model, step)
    return found


@torch.no_grad()
def move(model, step):
    """Other weights, the same in every process: rounding must not add up over steps."""
    r = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        parameter += 0.1 * torch.randn(parameter.shape, generator=r, dtype=parameter.dtype)


def work(rank, names):
    groups = {2: dist.new_group([0, 1]), 4: None}
    others = {"messages": alone.messages(rank), "numbers": alone.numbers(rank)}
    return others | {
        (name, dtype, size): train(CASES[name], dtype, rank, size, group)
        for name in names
        for dtype in TOLERANCES
        for size, group in groups.items()
        if rank < size
    }


def difference(alone, ours):
    """The largest of all, as a share of the largest number of its step and kind."""
    assert alone.keys() == ours.keys()
    largest, worst = {}, 0.0
    for (step, kind, _), value in alone.items():
        top = float(value.double().nan_to_num(0, 0, 0).abs().max()) if value.numel() else 0.0
        largest[step, kind] = max(top, largest.get((step, kind), SMALL))
    for key, one in alone.items():
        assert one.shape == ours[key].shape, key
        assert torch.equal(one.isfinite(), ours[key].isfinite()), key
        apart = (one - ours[key]).double().nan_to_num(0, 0, 0).abs()
        worst = max(worst, float(apart.max()) / largest[key[:2]] if apart.numel() else 0.0)
    return worst


@pytest.fixture(scope="module")
def ranks(tmp_path_factory, worker_id):
    """What every rank found: trained once, whichever worker of the tests comes first."""
    if worker_id == "master":
        return run_fleet(work, list(CASES))
    file = tmp_path_factory.getbasetemp().parent / "ranks.pt"
    with FileLock(f"{file}.lock"):
        if not file.exists():
            torch.save(run_fleet(work, list(CASES)), file)
    return torch.load(file, weights_only=False)  # our own


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_several_processes_are_one(ranks, name, dtype):
    alone = train(CASES[name], dtype)
    assert any(bool(v.abs().sum() > 0) for (_, kind, _), v in alone.items() if kind == "gradient")
    for size in (2, 4):
        for rank in range(size):
            assert difference(alone, ranks[rank][name, dtype, size]) < TOLERANCES[dtype]


MESSAGES = {
    "not told": "RuntimeError: There are 4 ranks, and Implicit does not know",
    "not wrapped": "TypeError: There are 4 ranks, and nothing averages the gradients of a Seq",
    "no model": "TypeError: attach takes the model that is trained; got str",
    "a function": "RuntimeError: This loss sees only its own rank's share",
    "own weights": "TypeError: The criterion trains weights that the model does not have (aux",
    "barrier": "ValueError: RateBarrier averages gradients over ranks; reduction='sum' cannot",
    "different columns": "ValueError: All ranks must call the criterion with the same kinds",
    "no numbers": "ValueError: Scores must be finite; got nan in row 4 of rank 3",
    "said before": "sum",
    "said and wrapped": "none",
    "wrapped": "mean",
    "a word": "ValueError: reduction must be 'mean', 'sum' or 'none'; got 'average'",
}


def test_what_is_wrong_on_one_rank_is_told_on_all(ranks):
    for rank, one in enumerate(ranks):
        for name, message in MESSAGES.items():
            assert one["messages"][name].startswith(message), (rank, name)
        whose = "Every column needs one row" if rank == 2 else "Rank 2 got a batch that it cannot"
        assert one["messages"]["a bad batch"].startswith(f"ValueError: {whose}")


def test_sums_ranks_by_themselves_micro_batches_and_selection(ranks):
    x, y = alone.data()
    model = alone.network()
    loss = alone.Implicit(alone.BOUND)(model(x), y)
    loss.backward()
    expected = alone.gradients(model)
    for one in ranks:
        found = one["numbers"]
        for kind in ("sum", "none", "accumulated"):
            torch.testing.assert_close(found[kind], expected, rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(found["accumulated loss"], loss.detach())
        assert found["empty"] == 0
        texts, copies, sizes = found["texts"]
        assert (texts, copies.tolist()) == ([str(int(v)) for v in y], y.tolist())
        assert sizes == list(alone.SIZES)


def test_a_model_attached_in_one_process_says_nothing_about_several():
    criterion = alone.Implicit(alone.BOUND).attach(alone.network())
    assert criterion.reduction is None  # so several ranks later are told to attach again
    assert alone.Implicit(alone.BOUND, reduction="sum").attach(alone.network()).reduction == "sum"
