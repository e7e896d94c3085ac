"""The benchmarks of the barrier's paper run on made-up data, and do not repeat finished runs."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ("lexicographic", "consistency", "auxiliary", "ablation", "trajectory")


@pytest.fixture
def study(request, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("SETPOINT_DATA", str(tmp_path / "no data"))
    rows = importlib.import_module("benchmarks.barrier.front_rows")
    monkeypatch.setattr(rows, "RESULTS", tmp_path)
    return importlib.import_module(f"benchmarks.barrier.{request.param}")


@pytest.mark.parametrize("study", STUDIES, indirect=True)
def test_every_case_gets_a_row_and_only_one(study, tmp_path, capsys):
    flags = ["--synthetic", "--seeds", "1", "--steps", "2"]
    study.main(flags)
    (stored,) = tmp_path.glob("*.jsonl")
    first = stored.read_text()
    assert len(first.splitlines()) == 1 + len(study.CASES)  # the first says what made them
    study.main(flags)
    assert stored.read_text() == first
    table = capsys.readouterr().out
    for method in {case["method"] for case in study.CASES}:
        assert method in table
