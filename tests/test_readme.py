"""The README runs: every python block and every shell command, in order, in one session."""

import re
import shlex
from pathlib import Path

import torch

from setpoint import cli, fnr_at_fpr

README = Path(__file__).parent.parent / "README.md"
TEXT = README.read_text("utf-8")
BLOCKS = re.findall(r"```(python|console)\n(.*?)```", TEXT, flags=re.DOTALL)


def test_everything_runs_in_order(tmp_path, monkeypatch, capsys):
    """One test, because a reader has one session: names and files of earlier blocks are there."""
    monkeypatch.chdir(tmp_path)
    names = {}
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds.count("python") >= 5
    assert kinds.count("console") >= 2
    for kind, block in BLOCKS:
        if kind == "console":
            check_commands(block, capsys)
            continue
        torch.manual_seed(0)
        exec(compile(block, str(README), "exec"), names)
        if "print(f" in block:
            assert re.search(r"[\d.]+%", capsys.readouterr().out)
    truth = names["test"].y
    assert fnr_at_fpr(0.01).evaluate(names["scores"], truth) < 0.6  # chance would be 0.99
    assert names["certificate"].certified
    assert names["accept"][truth == 0].numpy().mean() <= 0.01


def check_commands(block, capsys):
    """What the README shows is what is printed, but for the figures, which machines round."""
    for part in block.replace("\\\n", " ").split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "setpoint"
        assert cli.main(arguments) == 0
        out, err = capsys.readouterr()
        assert words(shown) == words(err + out)


def words(text):
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d.,e+-]*", "#", text)).strip()


def test_the_changed_line_of_the_diff_works():
    line = re.search(r"^\+ (criterion = .*)$", TEXT, flags=re.MULTILINE)
    namespace = {}
    exec("from setpoint import Implicit, Problem, fnr, fpr", namespace)
    exec(line[1], namespace)
    scores = torch.randn(50, 1, requires_grad=True)
    namespace["criterion"](scores, torch.arange(50) % 5 == 0).backward()
    assert scores.grad.abs().sum() > 0
