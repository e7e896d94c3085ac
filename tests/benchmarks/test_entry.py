"""``python -m benchmarks``: every benchmark by its name."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import step_cost
from benchmarks.__main__ import known, main
from benchmarks.common import index, results

ROOT = Path(__file__).parents[2]


def test_every_quick_benchmark_is_known_and_every_name_has_a_line():
    (quick,) = re.findall(r"^QUICK := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    names = known()
    assert set(quick.split()) <= set(names)
    assert all(names.values())


def test_no_text_runs_a_benchmark_as_a_file():
    """A file run by its path does not find the package `benchmarks`."""
    texts = [ROOT / "Makefile", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for text in (*texts, *(ROOT / "benchmarks").rglob("*.py")):
        assert not re.search(r"python benchmarks/.*\.py", text.read_text()), text


def test_a_process_that_measures_memory_finds_the_benchmark(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert step_cost.peak_megabytes(100_000, 1) > 1


def test_the_cost_of_a_step_is_measured_without_cooper(monkeypatch):
    monkeypatch.setattr(step_cost, "find_spec", lambda name: None)
    threads = torch.get_num_threads()
    found = {n: step_cost.linear_steps(n, 1) for n in (64, 512)}
    torch.set_num_threads(threads)
    assert [set(ms) for ms in found.values()] == [{"cross-entropy", "Implicit"}] * 2
    assert step_cost.table_of_linear(found).count("|  |") == 4
    sizes = step_cost.LIMITS
    rows = [{"scores": n, "thresholds": m, "median": 1.0} for n, m in sizes]
    assert "Cooper" not in step_cost.targets({}, found, rows)


def test_an_unknown_name_lists_the_known_ones(capsys):
    assert main(["nothing"]) == 2
    assert "peers.reach" in capsys.readouterr().out


def test_options_go_to_the_benchmark(monkeypatch):
    calls = []
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command) or 3)
    assert main(["peers.reach", "--quick"]) == 3
    assert calls == [[sys.executable, "-m", "benchmarks.peers.reach", "--quick"]]


def test_results_say_what_made_them_and_the_index_lists_them(tmp_path):
    names = known()
    index.write(names, tmp_path / "README.md")
    written = (tmp_path / "README.md").read_text()
    listed = re.findall(r"\(results/(.*?)\)", (ROOT / "benchmarks" / "README.md").read_text())
    assert len(listed) >= 40
    for file in (results.RESULTS / name for name in listed):
        assert f"(results/{file.name})" in written
        text = file.read_text()
        first = json.loads(text if file.suffix == ".json" else text.partition("\n")[0])
        assert first["about"].keys() >= {"benchmark", "command", "when", "versions"}, file
        assert first["about"]["benchmark"] in names, file


def test_a_command_leaves_out_where_the_rows_went_on_this_machine(monkeypatch, tmp_path):
    given = ["--out", str(tmp_path), "--goal", "FNR at FPR 1%", f"--out={tmp_path}/rows", "--quick"]
    monkeypatch.setattr("sys.argv", ["table", *given])
    assert results.about()["command"].endswith(" --goal 'FNR at FPR 1%' --quick")
    monkeypatch.setattr("sys.argv", ["table", "--out", "benchmarks/results/rows.jsonl"])
    assert results.about()["command"].endswith(" --out benchmarks/results/rows.jsonl")


ABSOLUTE = re.compile(r"(?<![\w./*+-])(?:/[\w.~-]+/|[A-Za-z]:\\\\?|~/|file:/)[\w.-]*")


@pytest.mark.parametrize(
    "path", ["/tmp/a.jsonl", "--out=/home/x/rows", r"D:\rows", "~/rows", "/a/b"]
)
def test_an_absolute_path_is_found(path):
    assert ABSOLUTE.search(f'"command": "python -m benchmarks study {path}"')


def test_no_result_file_nor_the_index_holds_a_path_of_a_machine():
    for file in (*results.RESULTS.iterdir(), ROOT / "benchmarks" / "README.md"):
        assert not ABSOLUTE.findall(file.read_text()), file


def test_rows_are_read_back_and_a_line_cut_short_is_left_out(tmp_path):
    file = tmp_path / "rows.jsonl"
    results.append(file, {"seed": 0, "value": 1.5})
    results.append(file, {"seed": 1, "value": 2.5})
    with file.open("a") as out:
        out.write('{"seed": 2, "val')
    assert results.read(file) == [{"seed": 0, "value": 1.5}, {"seed": 1, "value": 2.5}]
    assert ["about" in line for line in results.lines_of(file)] == [True, False, False]
    results.rewrite(file, [{"seed": 3}])
    assert results.read(file) == [{"seed": 3}]


def test_the_usual_options_have_their_defaults():
    given = results.parser("A line.", "out", quick="a look", seeds=3, minutes=2.0).parse_args([])
    assert vars(given) == {"quick": False, "seeds": 3, "minutes": 2.0, "out": None}
