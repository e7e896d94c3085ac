"""The README runs: every python block and every shell command, in order, in one session."""

import re
from pathlib import Path

import torch
from blocks import blocks, run_blocks

from setpoint import fnr_at_fpr

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text("utf-8")


def test_everything_runs_in_order(tmp_path, monkeypatch, capsys):
    """One test, because a reader has one session: names and files of earlier blocks are there."""
    monkeypatch.chdir(tmp_path)
    kinds = [kind for kind, _ in blocks(TEXT)]
    assert kinds.count("python") >= 5
    assert kinds.count("console") >= 2
    names, printed = run_blocks(TEXT, README, capsys)
    shown = [code for kind, code in blocks(TEXT) if kind == "python"]
    for code, output in zip(shown, printed, strict=True):
        assert "print(f" not in code or re.search(r"[\d.]+%", output)
    truth = names["test"].y
    assert fnr_at_fpr(0.01).evaluate(names["scores"], truth) < 0.6  # chance would be 0.99
    assert names["certificate"].certified
    assert names["accept"][truth == 0].numpy().mean() <= 0.01


def test_the_changed_line_of_the_diff_works():
    line = re.search(r"^\+ (criterion = .*)$", TEXT, flags=re.MULTILINE)
    namespace = {}
    exec("from setpoint import Implicit, Problem, fnr, fpr", namespace)
    exec(line[1], namespace)
    scores = torch.randn(50, 1, requires_grad=True)
    namespace["criterion"](scores, torch.arange(50) % 5 == 0).backward()
    assert scores.grad.abs().sum() > 0
