import io
import json
import sys

import numpy as np
import pytest
import torch
from rich.console import Console

from setpoint import certify, cli
from setpoint.comparison import Comparison, MethodTrial, demo
from setpoint.comparison.demo import (
    CROSS_ENTROPY,
    DEMO_GOALS,
    DEMO_METHODS,
    DEMO_MODELS,
    DRAWN,
    IMPLICIT,
    DemoPlan,
    certify_one,
    letter_split,
    make_table,
    run_plan,
)
from setpoint.comparison.pictures import scored_parts
from setpoint.comparison.tables import verdict
from setpoint.results import Summary, roc_curve, tpr_at


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One quick demo from the command line: its folder and what it printed."""
    out = tmp_path_factory.mktemp("demo") / "deep" / "[er]"
    with pytest.MonkeyPatch.context() as patch:
        printed = io.StringIO()
        patch.setattr(sys, "stdout", printed)
        assert cli.main(["demo", "--quick", "--seeds", "2", "--out", str(out)]) == 0
    return out, printed.getvalue()


@pytest.fixture(scope="module")
def found():
    steps = []
    plan = DemoPlan(seeds=1, steps=3)
    comparisons = run_plan(plan, 1, steps.append)
    assert sum(steps) == plan.total_steps == 2 * 4 * 3
    return comparisons


@pytest.mark.slow
def test_several_processes_find_what_one_finds(found):
    steps = []
    plan = DemoPlan(seeds=1, steps=3)
    again = run_plan(plan, 2, steps.append)
    assert sum(steps) == plan.total_steps
    assert list(again) == list(found)
    for cell, one in again.items():
        assert [(t.method, t.value) for t in one.trials] == [
            (t.method, t.value) for t in found[cell].trials
        ]


def test_the_table_has_every_goal_and_model(quick):
    _, text = quick
    for goal in DEMO_GOALS:
        assert text.count(goal) == 1
    table = text[: text.index("Percent on the held-out")]
    for model in DEMO_MODELS:
        assert table.count(model) == len(DEMO_GOALS)
    assert table.count(" ± ") >= 3 * len(DEMO_GOALS) * len(DEMO_MODELS)
    assert "not what it learns" in text  # quick says that it is quick


def test_it_speaks_json(found, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "_run_with_bar", lambda _plan: found)
    assert cli.main(["demo", "--seeds", "1", "--json", "--out", str(tmp_path / "out")]) == 0
    told = json.loads(capsys.readouterr().out)
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert told["comparisons"] == written["comparisons"]
    assert told["certificate"]["kind"] == "setpoint certificate"
    assert told["written"]["report.html"] == str(tmp_path / "out" / "report.html")


def test_it_says_where_the_files_are(quick):
    out, text = quick
    for name in ("roc.png", "results.json", "report.html"):
        assert str(out / name) in text
        assert (out / name).stat().st_size > 0


def test_it_ends_with_a_certificate_and_a_report(quick):
    out, text = quick
    last = text[text.index("seed 0") :]
    assert "certified: minimize fnr subject to fpr <= 0.01 with 95 % confidence" in last
    page = (out / "report.html").read_text(encoding="utf-8")
    for words in ("Certified", "calibration", "cross-entropy", "UCI Letter"):
        assert words in page


def test_the_certificate_is_of_rows_that_nothing_else_has_seen(found):
    certificate, finished = certify_one(found)
    parts = letter_split(0)
    ours = next(t for t in found[DRAWN, "linear"].trials if t.method == IMPLICIT)
    again = certify(ours.scores["validation"], parts.validation.y, DEMO_GOALS[DRAWN])
    assert certificate == again
    assert finished.threshold == again.threshold
    assert (finished.splits["calibration"].labels == parts.validation.y).all()
    assert (finished.splits["test"].scores == ours.scores["test"]).all()
    assert (finished.baseline["test"].scores != ours.scores["test"]).any()


def test_results_hold_every_single_number(quick):
    out, text = quick
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert results["seeds"] == [0, 1]
    assert set(results["versions"]) == {"setpoint", "torch", "numpy", "python"}
    assert len(results["comparisons"]) == len(DEMO_GOALS) * len(DEMO_MODELS)
    for one in results["comparisons"]:
        assert len(one["trials"]) == 2 * 2
        ours, theirs = (
            100 * np.array([t["value"] for t in one["trials"] if t["method"] == method])
            for method in (IMPLICIT, CROSS_ENTROPY)
        )
        better = ours - theirs if "FNR" not in one["goal"] else theirs - ours
        for shown in (f"{ours.mean():.1f} ± {ours.std(ddof=1):.1f}", f"{better.mean():+.1f} ± "):
            assert shown in text


def test_both_methods_start_from_the_same_weights_and_see_the_same_batches(monkeypatch):
    from setpoint.comparison import trials as room

    calls = []

    def watch(model, criterion, x, y, *, seed, sampler, **budget):
        calls.append((sum(p.sum().item() for p in model.parameters()), seed, x.sum().item()))
        budget.pop("on_step")
        calls[-1] += (type(sampler), vars(sampler), tuple(budget.items()))
        raise StopIteration

    monkeypatch.setattr(room, "fit", watch)
    for model in DEMO_MODELS:
        bench = DemoPlan().bench(model, 4)
        for method in DEMO_METHODS.values():
            torch.rand(1)  # whatever else was drawn does not matter
            with pytest.raises(StopIteration):
                bench.train(method, DEMO_GOALS[DRAWN])
    assert calls[0] == calls[1]
    assert calls[2] == calls[3]
    assert calls[0][0] != calls[2][0]


def test_cross_entropy_is_trained_once_for_all_goals(found):
    for model in DEMO_MODELS:
        runs = [
            t for goal in DEMO_GOALS for t in found[goal, model].trials if t.method == CROSS_ENTROPY
        ]
        assert len(runs) == len(DEMO_GOALS)
        assert len({t.ms_per_step for t in runs}) == 1


def test_the_drawn_curve_passes_through_the_reported_number(found):
    for model in DEMO_MODELS:
        drawn = found[DRAWN, model]
        for method, (pair,) in scored_parts(drawn.trials, drawn.labels).items():
            (value,) = (t.value for t in drawn.trials if t.method == method)
            assert 1 - tpr_at(roc_curve(*pair), 0.01) == pytest.approx(value, abs=1e-9)


def made_up(gain: float) -> dict[tuple[str, str], Comparison]:
    """Comparisons for all goals in which Implicit gains so many points on average."""

    def trial(method, seed, percent):
        return MethodTrial(method, seed, percent / 100, None, None, 0.01, 3, 1.0, "ok")

    comparisons = {}
    for goal, problem in DEMO_GOALS.items():
        sign = 1 if problem.maximize else -1
        trials = [
            trial(method, seed, percent)
            for seed, noise in enumerate((-1.0, 1.0))  # the standard error of the gain is 1
            for method, percent in (
                (CROSS_ENTROPY, 50.0),
                (IMPLICIT, 50.0 + (gain + noise) * sign),
            )
        ]
        comparisons |= {(goal, model): Comparison(problem, tuple(trials)) for model in DEMO_MODELS}
    return comparisons


@pytest.mark.parametrize(
    ("gain", "told"),
    [(3, "better"), (1.5, "better ?"), (0.04, "level"), (-1.5, "worse ?"), (-3, "worse")],
)
def test_rows_say_who_is_better_and_losing_ones_stay_in(gain, told):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(make_table(made_up(gain), DemoPlan()))
    lines = [
        line for line in console.export_text().splitlines() if "MLP 64" in line or "linear" in line
    ]
    assert len(lines) == len(DEMO_GOALS) * len(DEMO_MODELS)
    for line in lines:
        assert f"{gain:+.1f} ± 1.0   {told}  " in line


def test_one_seed_claims_nothing():
    assert verdict(Summary(1.0, np.nan, np.nan, 1), level=False) == "better ?"


def test_the_demo_leaves_the_number_of_threads_alone(monkeypatch, tmp_path):
    inside = []

    def stop(_plan):
        inside.append(torch.get_num_threads())
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_run_with_bar", stop)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(KeyboardInterrupt):
            demo.run_demo(DemoPlan(), tmp_path, str)
        assert inside == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
