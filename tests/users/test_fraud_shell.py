"""Fraud, from a shell: a European export of scored payments, late labels, a page and decisions."""

import gzip
import json

import numpy as np
import pytest
from cli.shell import run
from scipy.stats import beta


@pytest.fixture
def payments(tmp_path):
    """Semicolons, decimal commas, percent signs, latin-1, gzip, ids of 20 digits, blank labels."""
    random = np.random.default_rng(0)
    rows = 6000
    fraud = random.random(rows) < 0.05
    score = np.round(1 / (1 + np.exp(-(random.normal(size=rows) - 2 + 3 * fraud))), 6)
    late = random.random(rows) < 0.1
    amount = random.integers(1000, 9_999_999, rows) / 100
    lines = ["id;Betrag;Händler;Score;Betrug"]
    for i in range(rows):
        euro = f"{amount[i]:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
        label = "" if late[i] else "ja" if fraud[i] else "nein"
        percent = f"{100 * score[i]:.4f}".replace(".", ",")
        lines.append(f"1234567890123456{i:04d};{euro} €;Müller;{percent} %;{label}")
    path = tmp_path / "zahlungen.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode("cp1252")))
    return path, score, fraud, late


def most_alarms(negatives, share, confidence=0.95):
    """How many negatives may lie above the threshold, by scipy's exact binomial bound."""
    proved = [k for k in range(100) if beta.ppf(confidence, k + 1, negatives - k) <= share]
    return max(proved)


def test_from_a_messy_file_to_a_certified_threshold_a_page_and_decisions(
    payments, tmp_path, capsys
):
    path, score, fraud, late = payments
    columns = ["--score", "Score", "--label", "Betrug", "--positive", "ja"]
    out, page = tmp_path / "c.json", tmp_path / "page.html"
    code = run("certify", path, *columns, "--goal", "fpr <= 1 %", "--out", out, "--page", page)
    printed, notes = capsys.readouterr()
    assert code == 0
    assert printed.startswith("certified: fpr <= 0.01 with 95 % confidence")
    assert f"{late.sum():,} rows without a label in 'Betrug' left out" in notes
    assert "read as a percentage with decimal comma" in notes
    found = json.loads(out.read_text())
    threshold = found["points"][0]["threshold"]
    negatives = score[~late & ~fraud]
    assert (negatives > threshold).sum() == most_alarms(len(negatives), 0.01)
    assert "<script" in page.read_text("utf-8")  # one file, with the threshold to move in it

    decided = tmp_path / "decided.csv"
    names = ["--names", "pass", "block"]
    code = run("decide", path, "--score", "Score", "--certificate", out, "--out", decided, *names)
    capsys.readouterr()
    assert code == 0
    lines = decided.read_bytes().decode("cp1252").splitlines()
    assert len(lines) == 6001
    assert lines[1].startswith("12345678901234560000;")  # ids stay exact
    blocked = np.array([line.endswith("block") for line in lines[1:]])
    np.testing.assert_array_equal(blocked, score > threshold)
    alarms = blocked[~fraud].mean()
    assert alarms <= 0.012  # 1 % promised, three deviations of the 600 late rows' share allowed

    assert run("check", out, path, *columns) == 0
    assert run("card", out) == 0
    assert "fpr" in capsys.readouterr().out
