"""The README runs: every python block, in order, in one session."""

import re
from pathlib import Path

import pytest
import torch

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_there_are_blocks_to_run():
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.splitlines()[0][:40])
def test_block_runs(block, capsys):
    torch.manual_seed(0)
    exec(compile(block, str(README), "exec"), {})
    if "print" in block:
        rate = re.search(r"([\d.]+)%", capsys.readouterr().out)
        assert rate is not None
        assert float(rate[1]) < 60  # chance would be 99


def test_the_changed_line_of_the_diff_works():
    line = re.search(r"^\+ (criterion = .*)$", README.read_text(), flags=re.MULTILINE)
    namespace = {}
    exec("from setpoint import Implicit, Problem, fnr, fpr", namespace)
    exec(line[1], namespace)
    scores = torch.randn(50, 1, requires_grad=True)
    namespace["criterion"](scores, torch.arange(50) % 5 == 0).backward()
    assert scores.grad.abs().sum() > 0
