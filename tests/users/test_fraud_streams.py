"""Fraud, from a shell: standard input, other formats, a closed pipe, copies, inverted scores."""

import resource
import subprocess
import sys

import numpy as np
import pytest
from cli.shell import run

COMMAND = [sys.executable, "-c", "import sys; from setpoint.cli import main; sys.exit(main())"]


def table(rows=3000, seed=0):
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < 0.2).astype(int)
    return random.normal(size=rows) + 2 * labels, labels


def text(scores, labels):
    lines = [f"{s!r},{y}" for s, y in zip(scores.tolist(), labels.tolist(), strict=True)]
    return "\n".join(["s,y", *lines]) + "\n"


ASK = ["--score", "s", "--label", "y", "--goal", "fpr <= 5 %"]


def test_the_same_threshold_from_every_format(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    scores, labels = table()
    (tmp_path / "a.csv").write_text(text(scores, labels))
    arrow = pa.table({"s": scores, "y": labels})
    feather.write_feather(arrow, tmp_path / "a.feather")
    parquet.write_table(arrow, tmp_path / "a.parquet")
    with pa.CompressedOutputStream(str(tmp_path / "a.csv.zst"), "zstd") as file:
        file.write(text(scores, labels).encode())
    seen = set()
    for name in ("a.csv", "a.feather", "a.parquet", "a.csv.zst"):
        assert run("certify", tmp_path / name, *ASK) == 0
        seen.add(capsys.readouterr().out)
    assert len(seen) == 1


def test_standard_input_and_a_reader_that_leaves(tmp_path):
    given = text(*table()).encode()
    whole = subprocess.run([*COMMAND, "certify", "-", *ASK], input=given, capture_output=True)
    assert whole.returncode == 0
    (tmp_path / "a.csv").write_bytes(given)
    left = subprocess.Popen(
        [*COMMAND, "certify", str(tmp_path / "a.csv"), *ASK], stdout=subprocess.PIPE
    )
    left.stdout.close()  # as `| head -1` does once it has its line
    assert left.wait() != 2  # no mistake of the user


def test_a_certified_threshold_and_a_page_of_100_000_rows_in_three_seconds(tmp_path):
    scores, labels = table(100_000, seed=1)
    days = np.datetime64("2026-01-01") + np.arange(100_000) // 1000
    lines = [
        f"{s:.6f},{y},{'ab'[i % 2]},{day}"
        for i, (s, y, day) in enumerate(zip(scores, labels, days, strict=True))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["s,y,g,day", *lines]))
    more = ["--time", "day", "--group", "g", "--costs", "500", "5", "--page", str(tmp_path / "p")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*COMMAND, "certify", str(tmp_path / "a.csv"), *ASK, *more], check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3.0
    assert "proved with 95 % confidence" in (tmp_path / "p").read_text("utf-8")


def test_copies_and_inverted_scores_are_not_certified_in_silence(tmp_path, capsys):
    scores, labels = table()
    (tmp_path / "twice.csv").write_text(text(np.tile(scores, 2), np.tile(labels, 2)))
    assert run("certify", tmp_path / "twice.csv", *ASK) != 0
    assert "copies" in "".join(capsys.readouterr())
    (tmp_path / "inverted.csv").write_text(text(-scores, labels))
    assert run("certify", tmp_path / "inverted.csv", *ASK) == 1
    assert "but" in capsys.readouterr().out.splitlines()[0]  # certified, but ...
