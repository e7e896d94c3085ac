"""The eight pictures of the site: ``python -m docs.pictures`` (half a minute), or some by name.

They are drawn from what the package computes (1, 4, 5, 6), from stored results (3) or from words
(2, 7, 8).
"""

import sys

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch
from scipy.stats import binom, gaussian_kde, norm

from benchmarks.common import results
from benchmarks.study.report import by_table, clustered, gains
from docs.style import (
    BLUE,
    DARKER,
    GREEN,
    GREY,
    INK,
    NEGATIVE,
    ORANGE,
    OURS,
    POSITIVE,
    USUAL,
    plt,
    save,
)
from examples.one_page import draw as sample
from setpoint import Implicit, certify, fnr, fpr
from setpoint.problems import Problem

RATE = 0.02


def idea() -> None:
    """Scores of one model early and late in training, with the threshold and the band."""
    problem = Problem(minimize=fnr, subject_to=fpr <= RATE)
    random = torch.Generator().manual_seed(0)
    x, y = sample(20_000, random)
    torch.manual_seed(1)
    model = torch.nn.Linear(2, 1)
    criterion = Implicit(problem, steps=600)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    kept = []
    for step in range(601):
        if step in (60, 600):
            kept.append((step, model(x)[:, 0].detach()))
        rows = torch.randint(len(y), (1000,), generator=random)
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    figure, panels = plt.subplots(2, 1, figsize=(8.6, 5.2), sharex=True, layout="constrained")
    for panel, (step, scores) in zip(panels, kept, strict=True):
        _scores_and_band(panel, scores, y, step, problem)
    panels[1].set_xlabel("score")
    figure.suptitle(
        f"Scores, threshold and gradient band move together: FPR stays at {RATE:.0%}, recall rises",
        fontweight="bold",
        fontsize=12.5,
    )
    save(figure, "idea")


def _scores_and_band(
    panel: Axes, scores: torch.Tensor, y: torch.Tensor, step: int, problem: Problem
) -> None:
    """Densities of both classes; the threshold; where single scores have a gradient."""
    bare = Implicit(problem, share=0.0)
    leaf = scores.clone().requires_grad_()
    bare(leaf, y).backward()
    threshold = float(bare.thresholds.reshape(-1)[0])
    pull = leaf.grad.abs()
    band = scores[pull > 0.1 * pull.max()]
    recall = float((scores[y == 1] > threshold).double().mean())
    place = np.linspace(-6.5, 5.5, 400)
    for label, colour, line, name in (
        (0, NEGATIVE, "-", "negatives"),
        (1, POSITIVE, "--", "positives"),
    ):
        height = gaussian_kde(scores[y == label][:4000].numpy())(place)
        panel.fill_between(place, height, color=colour, alpha=0.18, lw=0)
        panel.plot(place, height, color=colour, lw=1.8, ls=line, label=name)
    top = panel.get_ylim()[1]
    panel.axvspan(
        float(band.min()),
        float(band.max()),
        color=GREEN,
        alpha=0.22,
        lw=0,
        label="band: scores with a gradient",
    )
    panel.axvline(threshold, color=INK, lw=1.6)
    middle = 0.62 * top
    for sign, colour, word in ((1, POSITIVE, "positives up"), (-1, NEGATIVE, "negatives down")):
        panel.annotate(
            "",
            (threshold + sign * 1.3, middle),
            (threshold + sign * 0.1, middle),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2},
        )
        panel.text(
            threshold + sign * 1.4,
            middle,
            word,
            va="center",
            ha="left" if sign > 0 else "right",
            fontsize=10,
        )
    false_alarms = float((scores[y == 0] > threshold).double().mean())
    panel.set_ylim(0, 1.12 * top)
    panel.text(
        0.99,
        0.97,
        f"step {step}\nFPR {false_alarms:.1%}\nrecall {recall:.0%}",
        transform=panel.transAxes,
        ha="right",
        va="top",
        fontweight="bold",
    )
    panel.text(threshold, 1.12 * top, " threshold", va="top")
    panel.set_yticks([])
    panel.spines["left"].set_visible(False)
    if step < 100:
        panel.legend(loc="upper left", fontsize=9.5)


def solvers() -> None:
    """Which solver for which case."""
    figure, panel = plt.subplots(figsize=(9.2, 5.4), layout="constrained")
    rows = [
        ("Scores exist already?", "certify", "or CertifiedThreshold: nothing to train"),
        (
            "Boosted trees, or a network that\nseparates the data?",
            "log-loss, then certify",
            "nothing measured was better",
        ),
        ("A trained network, only the head may move?", "retarget", "keeps the better head"),
        (
            "Two losses that are not rates?",
            "Barrier, pareto_front",
            "bounds or an order, no weights",
        ),
        ("The threshold must stay where it is?", "RateBarrier", "the model moves instead"),
        ("Several bounds that one threshold\ncannot meet?", "Lagrangian", "multipliers"),
    ]
    for i, (question, answer, why) in enumerate(rows):
        height = -1.15 * i
        _box(panel, 0, height, 4.0, question, BLUE)
        _box(panel, 5.4, height, 3.9, f"{answer}\n({why})", GREEN)
        _arrow(panel, (4.0, height), (5.4, height), "yes")
        last = i == len(rows) - 1
        _arrow(panel, (2.0, height - 0.42), (2.0, height - 0.73), "no")
        if last:
            _box(panel, 0, height - 1.15, 4.0, "Implicit(problem, steps=N)", GREEN)
    panel.set_xlim(-0.1, 9.5)
    panel.set_ylim(-1.15 * len(rows) - 0.5, 0.55)
    panel.set_title("Start at the top; the first yes names the method")
    panel.axis("off")
    save(figure, "solvers")


def gain() -> None:
    """The study's gains by width of the model."""
    rows = results.read(results.RESULTS / "study.jsonl")
    found = [g for g in gains(rows) if g.contaminated == 0.0]
    widths = sorted({g.hidden for g in found})
    figure, panel = plt.subplots(figsize=(8, 3.8), layout="constrained")
    for k, width in enumerate(widths):
        mine = by_table(g for g in found if g.hidden == width)
        estimate = clustered(mine)
        panel.plot(
            np.full(len(mine), k - 0.16),
            list(mine.values()),
            ls="",
            marker=DARKER[GREY],
            color=GREY,
            ms=4.5,
            alpha=0.8,
            label="one table" if k == 0 else None,
        )
        panel.errorbar(
            k + 0.08,
            estimate.mean,
            [[estimate.mean - estimate.low], [estimate.high - estimate.mean]],
            color=OURS,
            marker=DARKER[OURS],
            capsize=4,
            lw=2,
            label="mean, 95 % interval" if k == 0 else None,
        )
    panel.axhline(0, color=INK, lw=1)
    panel.set_xticks(range(len(widths)), ["linear" if not w else f"{w} units" for w in widths])
    panel.set_yscale("symlog", linthresh=2)
    panel.set_yticks([-20, -5, -1, 0, 1, 5], ["-20", "-5", "-1", "0", "1", "5"])
    panel.set_ylim(-60, 20)
    panel.set_ylabel("points over the best\nof six tuned baselines")
    panel.legend(loc="lower right")
    panel.set_title("Gains are small, and with 2 or 4 units some tables are lost")
    save(figure, "gain")


def certificate() -> None:
    """A number line of one certificate: measured, proved, bound."""
    random = np.random.default_rng(0)
    labels = random.random(5000) < 0.1
    scores = random.normal(size=5000) + 2.5 * labels  # the rows of docs/scores.md
    made = certify(scores, labels, fpr <= 0.01)
    negatives = int((~labels).sum())
    wrong = int((scores[~labels] > made.threshold).sum())
    measured, proved = 100 * wrong / negatives, 100 * made.claims[0].proved
    figure, panel = plt.subplots(figsize=(8.6, 2.9), layout="constrained")
    panel.axvspan(proved, 1.0, color=GREY, alpha=0.25, lw=0)
    panel.hlines(0, 0.6, 1.1, color=INK, lw=1)
    panel.hlines(0, measured, proved, color=OURS, lw=6, alpha=0.45)
    notes = (
        (
            measured,
            NEGATIVE,
            f"measured {measured:.3f} %\n{wrong} of {negatives:,} negatives\nabove the threshold",
            (0.66, 0.55),
        ),
        (
            proved,
            OURS,
            f"proved: at most {proved:.3f} %\nwith 95 % confidence,\nfrom the binomial law",
            (0.84, 0.55),
        ),
        (1.0, USUAL, "bound 1 %\nwhat you asked for", (1.03, 0.55)),
    )
    for value, colour, text, place in notes:
        panel.plot(value, 0, marker=DARKER[colour], color=colour, ms=11, zorder=3)
        panel.annotate(
            text,
            (value, 0.06),
            place,
            ha="left",
            va="bottom",
            fontsize=10.5,
            arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8},
        )
    panel.set_ylim(-0.2, 1.25)
    panel.set_xlim(0.6, 1.14)
    panel.set_xticks(
        [0.6, 0.7, 0.8, 0.9, 1.0, 1.1], [f"{v:.1f} %" for v in (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)]
    )
    panel.set_yticks([])
    panel.spines[["left", "bottom"]].set_visible(False)
    panel.set_xlabel("false positive rate")
    panel.set_title("certified: what is proved lies between what was measured and the bound")
    save(figure, "certificate")


def draws() -> None:
    """The true rate of thresholds from 2,000 calibration samples, chosen naively and certified."""
    random = np.random.default_rng(0)
    labels = np.arange(2500) < 500
    true = {"best on the sample": [], "certified": []}
    for _ in range(2000):
        scores = random.normal(size=2500) + 2.5 * labels
        naive = np.sort(scores[~labels])[-21]  # 1 % of 2,000 negatives are above
        true["best on the sample"].append(100 * norm.sf(naive))
        true["certified"].append(100 * norm.sf(certify(scores, labels, fpr <= 0.01).threshold))
    broken = {name: 100 * np.mean(np.array(rates) > 1) for name, rates in true.items()}
    figure, panel = plt.subplots(figsize=(8, 3.8), layout="constrained")
    edges = np.linspace(0.2, 1.8, 49)
    for (name, rates), colour, hatch in zip(true.items(), (USUAL, OURS), ("//", ""), strict=True):
        panel.hist(
            rates,
            edges,
            histtype="stepfilled",
            facecolor=colour,
            alpha=0.35,
            hatch=hatch,
            edgecolor=colour,
            lw=1.6,
            label=f"{name}: {broken[name]:.0f} % above 1 %",
        )
    panel.axvline(1, color=INK, lw=1.5)
    panel.text(0.99, panel.get_ylim()[1], "bound", va="top", ha="right")
    panel.set_xlabel("true FPR of the threshold, per cent (2,000 draws of 2,000 negatives)")
    panel.set_ylabel("draws")
    panel.legend()
    panel.set_title("A threshold tuned on the sample breaks a 1 % bound every other time")
    save(figure, "draws")


def rows() -> None:
    """How much of a bound a number of calibration rows lets a threshold use."""
    figure, panel = plt.subplots(figsize=(8, 3.8), layout="constrained")
    counts = np.unique(np.geomspace(50, 300_000, 250).astype(int))
    for bound, colour in ((0.05, ORANGE), (0.01, OURS), (0.001, BLUE)):
        allowed = binom.ppf(0.05, counts, bound) - 1
        share = np.where(allowed >= 0, 100 * np.maximum(allowed, 0) / counts / bound, np.nan)
        panel.plot(
            counts,
            share,
            color=colour,
            lw=1.8,
            marker=DARKER[colour],
            markevery=30,
            label=f"bound {100 * bound:g} %",
        )
    panel.set_xscale("log")
    panel.axhline(80, color=INK, lw=0.8, ls=":")
    panel.set_xticks([100, 1000, 10_000, 100_000], ["100", "1,000", "10,000", "100,000"])
    panel.set_ylim(0, 100)
    panel.set_xlabel("calibration rows of the class that the bound is about")
    panel.set_ylabel("usable part of the bound, %")
    panel.legend(loc="upper left")
    panel.set_title(
        "More rows let the threshold use more of its bound: 7,000 negatives for 80 % of 1 %"
    )
    save(figure, "rows")


def timeline() -> None:
    """Certify, deploy, watch, certify again."""
    figure, panel = plt.subplots(figsize=(9.2, 2.6), layout="constrained")
    stages = [
        ("certify", "held-out rows,\na certificate", GREEN),
        ("decide", "score > threshold,\nevery day", BLUE),
        ("watch", "update(scores, labels)\nor cron", ORANGE),
        ("alarm?", "false alarm: 5 %\nin its lifetime", USUAL),
        ("recalibrate", "rows after the alarm,\na new certificate", GREEN),
    ]
    for i, (word, text, colour) in enumerate(stages):
        _box(panel, 2.35 * i, 0, 1.95, f"{word}\n", colour, bold=True)
        panel.text(2.35 * i + 0.975, -0.16, text, ha="center", va="center", fontsize=8.8)
        if i:
            _arrow(panel, (2.35 * i - 0.4, 0), (2.35 * i, 0))
    end = 2.35 * 4 + 0.975
    panel.annotate(
        "",
        (2.35 + 0.975, -0.48),
        (end, -0.48),
        arrowprops={"arrowstyle": "-|>", "color": INK, "connectionstyle": "bar,fraction=-0.06"},
    )
    panel.set_xlim(-0.1, 11.5)
    panel.set_ylim(-1.25, 0.6)
    panel.set_title(
        "A certificate is about rows like its own: watch it, and certify again when it breaks"
    )
    panel.axis("off")
    save(figure, "timeline")


def architecture() -> None:
    """How the parts fit together."""
    figure, panel = plt.subplots(figsize=(9.2, 3.6), layout="constrained")
    _box(panel, 0, 0, 2.3, "Problem\nrates and bounds", BLUE)
    _box(panel, 3.0, 0.75, 2.5, "axis\nwho shares a threshold:\nall, group, class, query", ORANGE)
    _box(panel, 6.2, 0.75, 2.5, "solver\nImplicit, Lagrangian,\nBarrier, Program ...", ORANGE)
    _box(panel, 9.4, 0.75, 1.9, "your model\nand optimizer", GREY)
    _box(panel, 9.4, -0.85, 1.9, "scores\nof any model", GREY)
    _box(panel, 6.2, -0.85, 2.5, "certify\nthreshold with a proof", GREEN)
    _box(panel, 3.0, -0.85, 2.5, "decisions\ndecide, watch, report", GREEN)
    for start, end in (
        ((2.3, 0.2), (3.0, 0.6)),
        ((5.5, 0.75), (6.2, 0.75)),
        ((8.7, 0.75), (9.4, 0.75)),
        ((10.35, 0.3), (10.35, -0.4)),
        ((9.4, -0.85), (8.7, -0.85)),
        ((6.2, -0.85), (5.5, -0.85)),
    ):
        _arrow(panel, start, end)
    panel.annotate(
        "",
        (6.6, -0.4),
        (2.0, -0.42),
        arrowprops={"arrowstyle": "-|>", "color": INK, "connectionstyle": "arc3,rad=-0.15"},
    )
    panel.set_xlim(-0.1, 11.5)
    panel.set_ylim(-1.4, 1.3)
    panel.set_title("One Problem trains the model, certifies the threshold and judges decisions")
    panel.axis("off")
    save(figure, "architecture")


def _box(
    panel: Axes,
    left: float,
    middle: float,
    width: float,
    text: str,
    colour: str,
    bold: bool = False,
) -> None:
    panel.add_patch(
        FancyBboxPatch(
            (left, middle - 0.4),
            width,
            0.8,
            lw=1.6,
            edgecolor=colour,
            boxstyle="round,pad=0.02,rounding_size=0.08",
            facecolor=(*plt.matplotlib.colors.to_rgb(colour), 0.13),
        )
    )
    panel.text(
        left + width / 2,
        middle,
        text,
        ha="center",
        va="center",
        fontsize=9.8,
        fontweight="bold" if bold else "normal",
    )


def _arrow(
    panel: Axes, start: tuple[float, float], end: tuple[float, float], text: str = ""
) -> None:
    panel.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.3})
    if text:
        across = start[1] == end[1]
        panel.text(
            (start[0] + end[0]) / 2 + (0 if across else 0.1),
            (start[1] + end[1]) / 2 + (0.1 if across else 0),
            text,
            ha="center" if across else "left",
            va="bottom" if across else "center",
            fontsize=9.5,
        )


PICTURES = {
    f.__name__: f for f in (idea, solvers, gain, certificate, draws, rows, timeline, architecture)
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
