import json

import numpy as np
import pytest
from cli.shell import run, write_scores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.certificates import Certificate, certify


@pytest.fixture
def scores(tmp_path):
    return write_scores(tmp_path / "scores.csv")


def command(scores, *more, goal="fpr <= 0.05"):
    columns = [("--score", "s"), ("--label", "y")]
    own = [word for pair in columns if pair[0] not in more for word in pair]
    return ("certify", scores, *own, "--goal", goal, *more)


def test_certified_is_0_and_the_same_as_in_python(capsys, scores):
    assert run(*command(scores, "--json")) == 0
    found = Certificate.from_json(capsys.readouterr().out)
    s, y = np.loadtxt(scores, delimiter=",", skiprows=1, usecols=(0, 1)).T
    assert found == certify(s, y, "fpr <= 0.05")
    assert run(*command(scores)) == 0
    assert str(found) in capsys.readouterr().out


def test_rows_of_one_cluster_count_once(capsys, tmp_path):
    lines = [f"{i / 300},{i % 3 // 2},c{i}" for i in range(300)]
    file = tmp_path / "clusters.csv"
    file.write_text("\n".join(["s,y,customer", *lines]))
    assert run(*command(file, "--clusters", "customer")) in (0, 1)
    capsys.readouterr()
    file.write_text("\n".join(["s,y,customer", *lines, "0.5,0,c7"]))
    assert run(*command(file, "--clusters", "customer")) == 0
    assert "every cluster counts once" in capsys.readouterr().out
    assert run(*command(file, "--clusters", "client")) == 2
    assert "no column 'client' (--clusters)" in capsys.readouterr().err


def test_coverage_needs_no_labels(capsys, scores):
    given = ("certify", scores, "--score", "s", "--goal")
    assert run(*given, "coverage <= 0.1", "--json") == 0
    found = Certificate.from_json(capsys.readouterr().out)
    s = np.loadtxt(scores, delimiter=",", skiprows=1, usecols=0)
    assert found == certify(s, None, "coverage <= 0.1")
    assert run(*given, "coverage <= 0.1 and fpr <= 0.1") == 2
    error = capsys.readouterr().err
    assert "counts positives and negatives: add --label" in error
    assert error.count("\n") == 1


def test_new_rows_may_all_be_of_one_class(capsys, scores, tmp_path):
    saved, new = tmp_path / "c.json", tmp_path / "new.csv"
    assert run(*command(scores, "--out", saved)) == 0
    new.write_text("s,y\n" + "".join(f"{i / 100},0\n" for i in range(100)))
    assert run("check", saved, new, "--score", "s", "--label", "y") == 0
    capsys.readouterr()
    new.write_text("s,y\n" + "9,0\n" * 100)  # every negative is flagged
    assert run("check", saved, new, "--score", "s", "--label", "y") == 1
    assert "ALARM" in capsys.readouterr().out
    new.write_text("s,y\n" + "9,good\n" * 100)
    assert run("check", saved, new, "--score", "s", "--label", "y") == 2
    assert "say which is the positive one: --positive" in capsys.readouterr().err
    given = ("check", saved, new, "--score", "s", "--label", "y", "--positive")
    assert (run(*given, "good"), run(*given, "bad")) == (1, 1)  # nothing is below the threshold
    new.write_text("s,y\n" + "9,good\n" * 75 + "-9,good\n" * 25)
    assert (run(*given, "good"), run(*given, "bad")) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["certify", "--goal", 'fpr on g="a" <= 0.1'], "looks at groups: add --group g"),
        (["certify", "--goal", "fpr <= 0.1", "--confidence", "0.9999999999999"], "some doubt"),
        (["check"], "gone.json: no such file; name a certificate"),
    ],
)
def test_more_mistakes(capsys, scores, arguments, message):
    name, *more = arguments
    files = [scores] if name == "certify" else [scores.with_name("gone.json"), scores]
    columns = ["--score", "s", "--label", "y"]
    assert run(name, *files, *columns, *more) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_infeasible_is_1_with_the_number_needed(capsys, scores):
    assert run(*command(scores, goal="fpr <= 0.001")) == 1
    out = capsys.readouterr().out
    assert out.startswith("infeasible")
    assert "needs 2,995 negatives" in out


def test_options_reach_the_certificate(capsys, scores):
    options = ("--confidence", "0.9", "--candidates", "4", "--guarantee", "pac", "--json")
    assert run(*command(scores, *options)) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["confidence"], found["candidates"], found["guarantee"]) == (0.9, 4, "pac")
    goal = "precision >= 0.6"
    assert run(*command(scores, "--prevalence", "0.2", "--json", goal=goal)) in (0, 1)
    assert json.loads(capsys.readouterr().out)["prevalence"] == 0.2


def test_one_threshold_for_each_group(capsys, scores):
    assert run(*command(scores, "--group", "g", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert [point["group"] for point in found["points"]] == ["a", "b"]
    assert found["column"] == "g"


def test_check_by_group(capsys, scores, tmp_path):
    saved = tmp_path / "certificate.json"
    assert run(*command(scores, "--group", "g", "--out", saved)) == 0
    new = write_scores(tmp_path / "new.csv", seed=1)
    assert run("check", saved, new, "--score", "s", "--label", "y", "--group", "g") == 0
    capsys.readouterr()
    assert run("check", saved, new, "--score", "s") == 0  # the certificate names the column
    assert "alerts, g = 'a'" in capsys.readouterr().out
    bare = tmp_path / "bare.csv"
    bare.write_text("s\n" + "".join(f"{i / 100}\n" for i in range(100)))
    assert run("check", saved, bare, "--score", "s") == 2
    assert 'by "g"; pass --group' in capsys.readouterr().err


def test_even_our_own_mistakes_are_one_line(capsys, scores, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("setpoint.cli.certify.certify", broken)
    assert run(*command(scores)) == 2
    error = capsys.readouterr().err
    assert "a mistake of ours, RuntimeError: two lines" in error
    assert error.count("\n") == 1
    monkeypatch.setenv("SETPOINT_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        run(*command(scores))


def test_parquet_gives_the_same(capsys, scores, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    s, y = np.loadtxt(scores, delimiter=",", skiprows=1, usecols=(0, 1)).T
    pq.write_table(pa.table({"s": s, "y": y.astype(int)}), tmp_path / "scores.parquet")
    printed = []
    for path in (scores, tmp_path / "scores.parquet"):
        assert run(*command(path)) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--goal", "fprr <= 0.01"], "--goal 'fprr <= 0.01': Cannot read 'fprr'."),
        (["--goal", "maximize f_score(1)"], "has no bound"),
        (["--goal", ""], "--goal ''"),
        (["--score", "z"], "no column 'z' (--score); the columns are 's', 'y', 'g'"),
        (["--label", "label"], "no column 'label' (--label)"),
        (["--label", "s"], "a label column has two different values; this one has more than 20"),
        (["--confidence", "95"], "got '95'; for 95 % write 0.95"),
        (["--confidence", "high"], "must be a share between 0 and 1"),
        (["--positive", "2"], "--positive '2' is no label; the labels are '0', '1'"),
        (["--out", "gone/cert.json"], "the folder gone does not exist"),
    ],
)
def test_mistakes_are_2_and_one_line(capsys, scores, arguments, message):
    assert run(*command(scores, *arguments)) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert message in error
    assert "^" not in error  # a goal's carets point nowhere once the message is one line
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_no_file(capsys, tmp_path):
    assert run(*command(tmp_path / "gone.csv")) == 2
    assert capsys.readouterr().err == f"setpoint: error: {tmp_path / 'gone.csv'}: no such file.\n"


def test_neither_torch_nor_scipy_stats_nor_pandas_is_imported(fresh_python, scores):
    script = f"""
import sys
from setpoint.cli import main
assert main({[str(a) for a in command(scores)]!r}) == 0
heavy = {{"torch", "scipy.stats", "pandas", "pyarrow", "sklearn"}} & set(sys.modules)
assert not heavy, heavy
"""
    fresh_python(script)


def test_check_compares_with_the_certificate(capsys, scores, tmp_path):
    saved = tmp_path / "certificate.json"
    assert run(*command(scores, "--out", saved)) == 0
    for name, gap, shift, code in (("same", 2.5, 0.0, 0), ("moved", 2.5, 1.0, 1)):
        new = write_scores(tmp_path / f"{name}.csv", gap=gap, seed=1)
        lines = new.read_text().splitlines()
        moved = [f"{float(s) + shift!r},{rest}" for s, rest in (x.split(",", 1) for x in lines[1:])]
        new.write_text("\n".join([lines[0], *moved]))
        assert run("check", saved, new, "--score", "s", "--label", "y") == code
        assert run("check", saved, new, "--score", "s") == code
    assert "drift" in capsys.readouterr().out


def test_check_refuses_what_is_no_certificate(capsys, scores, tmp_path):
    saved = tmp_path / "certificate.json"
    run(*command(scores, "--out", saved))
    capsys.readouterr()
    text = saved.read_text()
    for forged in ("", "{}", text[: len(text) // 2], text.replace("0.05", "0.5"), "\xff"):
        saved.write_bytes(forged.encode("latin-1"))
        assert run("check", saved, scores, "--score", "s") == 2
        error = capsys.readouterr().err
        assert "is not a certificate that setpoint wrote" in error
        assert error.count("\n") == 1


def test_check_without_a_model_needs_scores(capsys, scores, tmp_path):
    saved = tmp_path / "certificate.json"
    run(*command(scores, "--out", saved))
    assert run("check", saved, scores) == 2
    assert "--score is missing" in capsys.readouterr().err


WORDS = [
    "fpr",
    "recall",
    "precision",
    "<=",
    ">=",
    "0.01",
    "%",
    "and",
    "subject to",
    "maximize",
    "(",
]
WORDS += [")", "-", "*", "/", "abs", "[", "]", "at", "1", "minimize"]


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(goal=st.one_of(st.text(max_size=30), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_any_goal_is_certified_or_told_in_one_line(capsys, scores, goal):
    assert run("certify", scores, "--score=s", "--label=y", f"--goal={goal}") in (0, 1, 2)
    error = capsys.readouterr().err
    assert len(error.splitlines()) <= 1 or error.startswith("usage")
    assert "Traceback" not in error
