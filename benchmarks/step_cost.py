"""What a training step costs: `Implicit` against cross-entropy and Cooper, and the loss alone.

    python -m benchmarks step_cost            # the table of docs/cost.md, about ten minutes
    python -m benchmarks step_cost --quick    # two minutes

Steps of all methods are interleaved within one run and compared as ratios of medians, so that a
noisy machine hurts everybody alike. Cooper's columns are empty unless it is installed. Writes JSON
(versions, seed, load, every timing), a plot, and with --docs the page itself.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common import results
from benchmarks.common.pages import shortened
from setpoint import Implicit, Problem, __version__, fnr, fnr_at_fpr, fpr, roc_auc
from setpoint.solvers import METHODS

HERE = Path(__file__).parent
PROBLEM = fnr_at_fpr(0.05)
ONE = Problem(minimize=fnr, subject_to=fpr.at(0.05))
TEN = roc_auc(fpr=(0.0, 0.05), points=10)


def paper_cnn(share: int) -> nn.Sequential:
    """ICO's network: convolutions of 128-256-256-512-512 filters with batch norm, one output."""
    widths = [3, *(w // share for w in (128, 256, 256, 512, 512))]
    strides, kernels = (1, 2, 2, 2, 1), (3, 3, 3, 3, 1)
    layers: list[nn.Module] = []
    for i in range(5):
        conv = nn.Conv2d(widths[i], widths[i + 1], kernels[i], strides[i], padding=kernels[i] // 2)
        layers += [conv, nn.BatchNorm2d(widths[i + 1]), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(widths[-1] * 16, 1))


# ---- methods: each does the forward, loss and backward passes of one step ----


def by_name(name: str, model: nn.Module) -> Callable[..., None]:
    """A step of a method of :data:`setpoint.solvers.METHODS`."""
    module, criterion = METHODS[name].build(model, ONE, 1000)

    def run(_model: nn.Module, x: Tensor, y: Tensor) -> None:
        found = module(x)
        criterion(found[:, 0] if module is model else found, y).backward()

    return run


def one_backward(criterion: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., None]:
    def run(model: nn.Module, x: Tensor, y: Tensor) -> None:
        criterion(model(x)[:, 0], y).backward()

    return run


def separate_passes(model: nn.Module, x: Tensor, y: Tensor) -> None:
    """Equation 5 as it stands: df/dw and dg/dw by a backward pass each, then put together."""
    s = model(x)[:, 0]
    positive, h = y > 0, s.detach().std() / 20
    t = s[~positive].detach().topk(max(1, int(0.05 * (~positive).sum()) + 1)).values[-1]
    t.requires_grad_()
    f, g = torch.sigmoid((t - s[positive]) / h).mean(), torch.sigmoid((s[~positive] - t) / h).mean()
    parameters = list(model.parameters())
    *f_by_weight, f_by_t = torch.autograd.grad(f, [*parameters, t], retain_graph=True)
    *g_by_weight, g_by_t = torch.autograd.grad(g, [*parameters, t])
    for p, a, b in zip(parameters, f_by_weight, g_by_weight, strict=True):
        p.grad = a - f_by_t / g_by_t * b


def methods(model: nn.Module) -> dict[str, Callable[..., None]]:
    bce = nn.BCEWithLogitsLoss()
    return {
        "cross-entropy": one_backward(lambda s, y: bce(s, y.float())),
        "Implicit, 1 threshold": one_backward(Implicit(PROBLEM, steps=1000)),
        "Implicit, 10 thresholds": one_backward(Implicit(TEN, steps=1000)),
        "ico": by_name("ico", model),
        "fico_1": by_name("fico_1", model),
        "fico_2": by_name("fico_2", model),
        "separate backward passes": separate_passes,
    }


def whole_steps(share: int, batch: int, rounds: int, seed: int) -> dict[str, list[float]]:
    """CPU seconds of training steps (forward, loss, backward, Adam), methods taken in turn."""
    torch.manual_seed(seed)
    model = paper_cnn(share)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    runs = methods(model)
    x, y = torch.randn(batch, 3, 32, 32), (torch.rand(batch) < 0.3).long()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for i in range(rounds + 1):
        for name in order:
            optimizer.zero_grad()
            start = time.process_time()
            runs[name](model, x, y)
            optimizer.step()
            if i:  # the first round warms up
                seconds[name].append(time.process_time() - start)
        order = order[1:] + order[:1]  # nobody always follows the same neighbour
    return seconds


def loss_alone(n: int, points: int, repeats: int) -> list[float]:
    """CPU seconds of one loss and its backward pass on ready scores."""
    rng = torch.Generator().manual_seed(0)
    labels = (torch.rand(n, generator=rng) < 0.2).long()
    scores = (torch.randn(n, generator=rng) + 1.5 * labels).requires_grad_()
    criterion = Implicit(roc_auc(fpr=(0.0, 0.05), points=points), steps=1000)
    seconds = []
    for i in range(repeats + 3):
        start = time.process_time()
        criterion(scores, labels).backward()
        if i >= 3:
            seconds.append(time.process_time() - start)
    return seconds


def peak_megabytes(n: int, points: int) -> float:
    """Peak memory that one loss adds, measured in a process of its own (Linux)."""
    code = (
        "import re\n"
        "from benchmarks.step_cost import loss_alone\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        f"loss_alone(1000, {points}, 1)\n"
        "before = peak()\n"
        f"loss_alone({n}, {points}, 1)\n"
        "print((peak() - before) / 1024)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE.parent)
    return float(done.stdout)


# ---- small models: nothing hides the cost of the criterion ----

Step = Callable[[], object]
FEATURES = 16


def linear_data(n: int) -> tuple[Tensor, Tensor]:
    """A tenth of positives, shifted in every feature."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(n, generator=rng) < 0.1).float()
    return torch.randn(n, FEATURES, generator=rng) + 0.7 * y[:, None], y


def criterion_step(criterion: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Step:
    """Forward, loss, backward and Adam of a linear model."""
    model = nn.Linear(FEATURES, 1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step() -> None:
        loss = criterion(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def cooper_step(x: Tensor, y: Tensor) -> Step:
    """The same by Cooper (pip install cooper-optim), its two rates written by hand in torch."""
    import cooper

    model, multiplier = (
        nn.Linear(FEATURES, 1),
        cooper.multipliers.DenseMultiplier(num_constraints=1),
    )

    class Rates(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            kind = cooper.ConstraintType.INEQUALITY
            self.bound = cooper.Constraint(constraint_type=kind, multiplier=multiplier)

        def compute_cmp_state(self) -> object:
            on, negative = torch.sigmoid(model(x)[:, 0]), 1 - y
            missed = ((1 - on) * y).sum() / y.sum()
            excess = (on * negative).sum() / negative.sum() - 0.01
            state = cooper.ConstraintState(violation=excess.reshape(1))
            return cooper.CMPState(loss=missed, observed_constraints={self.bound: state})

    problem = Rates()
    primal = torch.optim.Adam(model.parameters(), 1e-3)
    dual = torch.optim.SGD(problem.dual_parameters(), 1e-2, maximize=True)
    return cooper.optim.SimultaneousOptimizer(problem, primal, dual).roll


def linear_steps(n: int, repeats: int) -> dict[str, float]:
    """The least CPU milliseconds of a step of each method, taken in turn on one thread."""
    torch.set_num_threads(1)
    x, y = linear_data(n)
    one = Problem(minimize=fnr, subject_to=fpr <= 0.01)
    runs = {
        "cross-entropy": criterion_step(nn.BCEWithLogitsLoss(), x, y),
        "Implicit": criterion_step(Implicit(one, steps=10**6), x, y),
    }
    if find_spec("cooper"):
        runs["Cooper"] = cooper_step(x, y)
    least = dict.fromkeys(runs, float("inf"))
    for i in range(repeats + 5):
        for name, run in runs.items():
            start = time.process_time()
            run()
            if i >= 5:  # the first rounds warm up
                least[name] = min(least[name], 1e3 * (time.process_time() - start))
    return least


def table_of_linear(found: dict[int, dict[str, float]]) -> str:
    lines = [
        "| scores | cross-entropy, ms | `Implicit`, ms | Cooper, ms "
        "| `Implicit` : cross-entropy | `Implicit` : Cooper |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for n, ms in found.items():
        own, plain, other = ms["Implicit"], ms["cross-entropy"], ms.get("Cooper")
        time_, ratio_ = ("", "") if other is None else (f"{other:.3f}", f"{own / other:.2f} x")
        lines.append(
            f"| {n:,} | {plain:.3f} | {own:.3f} | {time_} | {own / plain:.2f} x | {ratio_} |"
        )
    return "\n".join(lines)


# ---- reporting ----


def summary(seconds: list[float]) -> dict[str, float]:
    low, middle, high = np.percentile(seconds, [25, 50, 75])
    return {"median": float(middle), "low": float(low), "high": float(high), "n": len(seconds)}


def facts(seed: int, threads: int) -> dict[str, object]:
    return {
        "setpoint": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": threads,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "seed": seed,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def ratio(own: list[float], reference: list[float]) -> tuple[float, float, float]:
    """Median ratio to the reference of the same round, and its quartiles."""
    ratios = [a / b for a, b in zip(own, reference, strict=True)]
    low, _, high = np.percentile(ratios, [25, 50, 75])
    return statistics.median(ratios), float(low), float(high)


def table_of_steps(title: str, seconds: dict[str, list[float]]) -> str:
    lines = [
        f"| {title} | CPU ms per step | ratio to cross-entropy (quartiles) |",
        "| --- | --- | --- |",
    ]
    for name, own in seconds.items():
        middle, low, high = ratio(own, seconds["cross-entropy"])
        lines.append(
            f"| {name} | {1e3 * statistics.median(own):.1f} | {middle:.2f} ({low:.2f}-{high:.2f}) |"
        )
    return "\n".join(lines)


def table_of_losses(rows: list[dict[str, float]]) -> str:
    lines = ["| scores | thresholds | ms (quartiles) | MB added |", "| --- | --- | --- | --- |"]
    for r in rows:
        time_ = f"{1e3 * r['median']:.2f} ({1e3 * r['low']:.2f}-{1e3 * r['high']:.2f})"
        memory = f"{r['mb']:.0f}" if "mb" in r else ""
        lines.append(f"| {r['scores']:,} | {r['thresholds']} | {time_} | {memory} |")
    return "\n".join(lines)


def plot(rows: list[dict[str, float]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for points, color in ((1, "#0072b2"), (10, "#d55e00")):
        line = [(r["scores"], 1e3 * r["median"]) for r in rows if r["thresholds"] == points]
        left.loglog(
            *zip(*sorted(line), strict=True), "o-", color=color, label=f"{points} threshold(s)"
        )
    left.set(xlabel="scores", ylabel="ms, forward and backward", title="growth with the batch")
    left.legend(frameon=False)
    for n, color in ((512, "#0072b2"), (32_768, "#d55e00")):
        line = [(r["thresholds"], 1e3 * r["median"]) for r in rows if r["scores"] == n]
        right.loglog(*zip(*sorted(line), strict=True), "o-", color=color, label=f"{n:,} scores")
    right.set(xlabel="thresholds", title="growth with the thresholds")
    right.legend(frameon=False)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.savefig(path, dpi=150)


LIMITS = {(512, 1): 0.25, (512, 10): 0.35, (32_768, 1): 1, (32_768, 10): 3, (1_000_000, 10): 1000}
"""Milliseconds of the loss alone, by scores and thresholds."""


def targets(
    steps: dict[str, dict],
    linear: dict[int, dict[str, float]],
    rows: list[dict[str, float]],
) -> str:
    """What was aimed at, and whether it was reached in this run."""
    lines = ["| target | measured | |", "| --- | --- | --- |"]
    for name, run in steps.items():
        for method in ("Implicit, 1 threshold", "Implicit, 10 thresholds"):
            found = ratio(run["seconds"][method], run["seconds"]["cross-entropy"])[0]
            met = "met" if found <= 1.03 else "not met"
            lines.append(f"| {method}, {name} width: at most 1.03 x | {found:.2f} x | {met} |")
    pairs = [(512, "cross-entropy", 1.6), *((n, "Cooper", 1.2) for n in linear)]
    for n, other, limit in pairs:
        if other not in linear[n]:  # Cooper is not installed
            continue
        found = linear[n]["Implicit"] / linear[n][other]
        met = "met" if found <= limit else "not met"
        lines.append(
            f"| linear model, {n:,} scores: at most {limit} x {other} | {found:.2f} x | {met} |"
        )
    for (n, m), limit in LIMITS.items():
        (row,) = (r for r in rows if (r["scores"], r["thresholds"]) == (n, m))
        found = 1e3 * row["median"]
        met = "met" if found < limit else "not met"
        lines.append(f"| loss of {n:,} x {m}: under {limit:,} ms | {found:.3g} ms | {met} |")
    return "\n".join(lines)


def page(result: dict[str, object], tables: dict[str, str]) -> str:
    f = result["facts"]
    assert isinstance(f, dict)
    return f"""# What a step costs

Made by `python -m benchmarks step_cost --docs` (torch {f["torch"]}, {f["threads"]} threads,
{f["cores"]} cores, load {f["load"][0]:.1f}; linear models and the loss alone on one thread).
Steps of all methods are interleaved within one run and timed by CPU time; a ratio is the median,
over rounds, of a method's step divided by cross-entropy's step of the same round, with its
quartiles.

## Whole training steps

Forward, loss, backward and Adam on the network of the ICO paper (convolutions of 128, 256, 256, 512
and 512 filters with batch norm, images of 32 x 32), and at a quarter of the width.

{tables["full"]}

{tables["quarter"]}

`ico` is Kumar et al.'s Algorithm 1 with the linear update of its line 10; "separate backward
passes" is their equation 5 taken literally; `fico_1` and `fico_2` are the methods of Chen et al.,
which hold by the last layer alone. `Implicit` needs none of this: the threshold's gradient is
known in closed form on the scores, so the network sees one backward pass whatever the number of
thresholds. FICO is cheaper than ICO, as its authors say, and no cheaper than `Implicit`.

## A linear model

Nothing hides the cost of the criterion here: {FEATURES} weights, Adam, one thread. The least CPU
time of a step, methods taken in turn within one run. Cooper is version 1.0.1 with the two rates of
its Lagrangian written by hand as sigmoids at a fixed threshold; it finds no threshold and no width.

{tables["linear"]}

## The loss alone

Forward and backward on ready scores, default settings (`roc_auc(fpr=(0, 0.05))`), after warming up.

{tables["loss"]}

![Milliseconds of the loss grow linearly with scores and thresholds](images/step_cost.png)

## Targets

{tables["targets"]}

The quartiles say how noisy the machine was. On a batch of 512 the time is that of some hundred
small operations, whatever the number of thresholds. Where one target on one class decides (a cap
on the false positive rate, on coverage), the threshold is an order statistic and takes a partition;
other goals sort the scores and look at every cut.
"""


def main() -> None:
    parser = results.parser(__doc__, "docs", quick="a coarse run of two minutes")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "step_cost.json")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    found_threads = torch.get_num_threads()
    plans = {
        "full": (1, 64, 3 if options.quick else 12),
        "quarter": (4, 256, 6 if options.quick else 40),
    }
    tables, steps = {}, {}
    for name, (share, batch, rounds) in plans.items():
        seconds = whole_steps(share, batch, rounds, options.seed)
        steps[name] = {"batch": batch, "seconds": seconds}
        tables[name] = table_of_steps(f"{name} width, batch {batch}", seconds)
        print(tables[name], "\n", flush=True)

    torch.set_num_threads(1)
    linear = {
        n: linear_steps(n, repeats // (4 if options.quick else 1))
        for n, repeats in ((512, 2000), (4_096, 1000), (32_768, 200))
    }
    tables["linear"] = table_of_linear(linear)
    print(tables["linear"], "\n", flush=True)

    sizes = [512, 4_096, 32_768, 262_144, 1_000_000]
    cells = [(n, m) for n in sizes for m in (1, 10)] + [
        (n, m) for n in (512, 32_768) for m in (3, 30, 100)
    ]
    rows = []
    for n, m in sorted(cells):
        repeats = max(3, min(200, int(2e6 / n))) // (4 if options.quick else 1)
        row: dict[str, float] = {
            "scores": n,
            "thresholds": m,
            **summary(loss_alone(n, m, max(3, repeats))),
        }
        if n == 1_000_000:
            row["mb"] = peak_megabytes(n, m)
        rows.append(row)
    tables["loss"] = table_of_losses(rows)
    tables["targets"] = targets(steps, linear, rows)
    print(tables["loss"], "\n\n" + tables["targets"])

    result: dict[str, object] = {
        "facts": facts(options.seed, found_threads),
        "steps": steps,
        "linear": linear,
        "loss": rows,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results.write_document(options.out, result)
    if options.docs:
        docs = HERE.parent / "docs"
        (docs / "images").mkdir(parents=True, exist_ok=True)
        plot(rows, docs / "images" / "step_cost.png")
        written = shortened(page(result, tables), "cost", docs, docs / "tables")
        (docs / "cost.md").write_text(written + "\n")
    print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
