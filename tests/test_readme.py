"""The README runs: python blocks and commands, in order, with what a reader has at each door."""

import re
import shlex
from pathlib import Path

import numpy as np
import torch
from blocks import run_blocks

from docs.badges import badge, facts
from setpoint import cli

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8")
LANGUAGES = ("", "python", "sh")  # blank lines, and fences of code
RANDOM = np.random.default_rng(0)


def sample(rows):
    labels = RANDOM.random(rows) < 0.2
    return RANDOM.normal(size=rows) + 2.5 * labels, labels.astype(int)


def test_the_doors_of_scores_and_of_a_loop(capsys):
    (scores, labels), (new_scores, truth) = sample(5000), sample(20_000)
    x = torch.randn(64, 3)
    given = {
        "scores": scores,
        "labels": labels,
        "new_scores": new_scores,
        "epochs": 2,
        "loader": range(10),
        "model": torch.nn.Linear(3, 1),
        "x": x,
        "y": (x[:, 0] > 0).long(),
    }
    names, _ = run_blocks(TEXT, "README.md", capsys, given)
    assert names["certificate"].certified
    assert names["accept"][truth == 0].mean() <= 0.01
    names["loss"].backward()
    assert names["model"].weight.grad.abs().sum() > 0


def test_the_door_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("payments.csv", "new.csv"):
        first, labels = sample(3000)
        table = np.column_stack([first, RANDOM.normal(size=3000), labels])
        np.savetxt(name, table, delimiter=",", header="a,b,is_fraud", comments="", fmt="%.6g")
    shell = "".join(re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL))
    commands = [line for line in shell.splitlines() if line.startswith("setpoint ")]
    assert len(commands) == 3
    for line in commands:
        _, *words = shlex.split(line, comments=True)
        assert cli.main(words) == 0
    assert (tmp_path / "decisions.csv").exists()


def test_it_is_short():
    shown = [line for line in TEXT.splitlines() if line.strip().strip("`") not in LANGUAGES]
    assert len(shown) <= 35
    assert len(re.findall(r"^\*\*You have", TEXT, flags=re.MULTILINE)) == 3


def test_its_figures_are_those_of_the_pages():
    """The table claims what the pages of the evidence say, and nothing else."""
    docs = ROOT / "docs"
    names = ("study", "certificates_measured", "when_does_it_pay")
    study, proofs, pays = ((docs / f"{name}.md").read_text(encoding="utf-8") for name in names)
    (most,) = re.findall(r"the most in any is ([\d.]+ %)", proofs)
    assert f"broken in at most {most} at 95 % confidence" in TEXT
    (naive,) = re.findall(r"breaks its promise in ([\d.]+) %", proofs)
    assert f"broken in {float(naive):.0f} % of draws" in TEXT
    trees = r"([-+.\d]+) over trees on average, ([-+.\d]+ to [-+.\d]+)"
    (ahead, interval), *_ = re.findall(trees, pays)
    assert f"{ahead} points ({interval}) on the study's tables" in TEXT
    behind = r"behind by ([.\d]+), ([-+.\d]+ to [-+.\d]+), clustered"
    (ahead, interval), *_ = re.findall(behind, pays)
    assert f"+{ahead} ({interval}) on those that chose it" in TEXT
    for model in ("linear", "2 to 8 units", "32 units"):
        line = re.search(rf"\| H2 {model} \| ([-+.\d]+) \([\d.]+; ([-+.\d]+ to [-+.\d]+)", study)
        mean, interval = line.groups()
        assert f"{mean} points" in TEXT, f"write the study's {model} into the README"
        assert interval in TEXT


def test_badges_are_true():
    shown = re.findall(r"badge_(\w+)\.svg", TEXT)
    assert shown == list(facts())
    for name in shown:
        written = (ROOT / "docs" / "images" / f"badge_{name}.svg").read_text()
        assert written == badge(name, facts()[name])
