"""Drift among calibration rows, before a certificate is made."""

import numpy as np
import pytest
from cli.shell import run

from setpoint.certificates import certify, exchangeability, moving_columns
from setpoint.certificates.calibration_drift import order_note


def rows(n=3000, seed=0, drift=0.0, more_positives=0.0):
    random = np.random.default_rng(seed)
    time = np.linspace(0, 1, n)
    labels = random.random(n) < 0.1 + more_positives * time
    return random.normal(size=n) + 2 * labels + drift * time, labels


def test_rows_in_random_order_pass():
    """1 % of 100 samples may alarm; more than 5 do so with probability below 0.001."""
    found = [exchangeability(*rows(1000, seed)).drifts for seed in range(100)]
    assert sum(found) <= 5


def test_drifting_scores_are_found_and_told():
    found = exchangeability(*rows(drift=1.5), threshold=2.0)
    assert not found
    assert found.reason.startswith("these rows drift: alert share ")
    assert "in the first fifth" in found.reason
    assert found.alert_shares[-1] > 2 * found.alert_shares[0]


def test_drifting_labels_are_found():
    found = exchangeability(*rows(more_positives=0.3))
    assert found.drifts
    assert found.evidence["labels"] >= found.limit
    assert "positives" in found.reason


def test_times_put_rows_in_order():
    scores, labels = rows(drift=1.5)
    shuffled = np.random.default_rng(1).permutation(len(scores))
    assert exchangeability(scores[shuffled], labels[shuffled])
    assert not exchangeability(scores[shuffled], labels[shuffled], times=shuffled)


def test_drift_within_a_class_is_found_where_all_scores_hide_it():
    """Positives fall and negatives rise; the mixture of both hardly moves."""
    random = np.random.default_rng(2)
    labels, time = random.random(6000) < 0.5, np.linspace(0, 1, 6000)
    scores = random.normal(size=6000) + np.where(labels, 1 - 2 * time, -1 + 2 * time)
    found = exchangeability(scores, labels)
    assert found.evidence["scores of positives"] > found.limit
    assert found.evidence["scores of negatives"] > found.limit


def test_few_rows_say_nothing():
    assert exchangeability(np.arange(15.0))
    assert not exchangeability(np.arange(100.0))  # a trend is seen in fewer than a fifth of 50


def test_moving_columns_are_named_with_their_values():
    random, n = np.random.default_rng(0), 2000
    columns = {
        "age": random.normal(40, 9, n),
        "slow": random.normal(size=n) + 0.1 * np.linspace(0, 1, n),
        "euro rate": np.linspace(4.8, 1.3, n),
        "channel": np.where(random.random(n) < np.linspace(0.1, 0.8, n), "web", "shop"),
    }
    found = moving_columns(columns)
    assert [column.name for column in found] == ["channel", "euro rate"] or [
        column.name for column in found
    ] == ["euro rate", "channel"]
    by_name = {column.name: column for column in found}
    assert by_name["euro rate"].extrapolates
    assert "in the first fifth" in str(by_name["channel"])


def test_a_level_outside_is_refused():
    with pytest.raises(ValueError, match="significance must be a share"):
        exchangeability(np.arange(10.0), significance=2)


def test_rows_that_drift_are_not_certified_unless_that_is_accepted():
    scores, labels = rows(drift=1.5)
    times = np.arange(len(scores))
    refused = certify(scores, labels, "fpr <= 0.1", times=times)
    assert refused.status == "not certified"
    assert refused.notes[0].startswith("these rows drift: alert share")
    assert refused.points[0].threshold is None
    accepted = certify(scores, labels, "fpr <= 0.1", times=times, accept_drift=True)
    assert accepted
    assert accepted.caveats[0].startswith("these rows drift")
    quiet = certify(*rows(), "fpr <= 0.1", times=times)
    assert quiet
    assert not quiet.caveats


def test_python_notices_rows_in_evident_order_too():
    for order in (slice(None), slice(None, None, -1)):
        made = certify(*(column[order] for column in rows(drift=1.0)), "fpr <= 0.1")
        assert made.certified
        assert "In the order they came these rows drift: alert share" in made.notes[-1]
    scores, labels = rows(drift=1.0)
    by_score = np.argsort(scores)
    mixed = np.random.default_rng(0).permutation(len(scores))
    for same in (rows(), (scores[by_score], labels[by_score]), (scores[mixed], labels[mixed])):
        assert not any("In the order" in note for note in certify(*same, "fpr <= 0.1").notes)


def test_lots_among_equal_times_are_not_the_numbers_that_simulated_rows_come_from():
    random = np.random.default_rng(0)
    labels = random.random(8000) < 0.3
    assert exchangeability(random.normal(size=8000), labels, times=np.arange(8000) // 400)


def test_rows_without_drift_are_rarely_said_to_be_in_order():
    random = np.random.default_rng(0)
    said = [order_note(random.normal(size=400), random.random(400) < 0.3) for _ in range(400)]
    assert sum(note is not None for note in said) <= 2  # one in a thousand


def write(path, drift, time=True):
    scores, labels = rows(drift=drift)
    lines = [
        f"{s!r},{int(y)},{i}" for i, (s, y) in enumerate(zip(scores.tolist(), labels, strict=True))
    ]
    path.write_text("\n".join(["s,y,t", *lines]) + "\n")
    return path


def test_the_command_refuses_drifting_rows_and_notices_them_without_a_time(tmp_path, capsys):
    file = write(tmp_path / "a.csv", 1.5)
    words = ("certify", file, "--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
    assert run(*words, "--time", "t") == 1
    assert "these rows drift" in capsys.readouterr().out
    assert run(*words, "--time", "t", "--accept-drift") == 0
    assert "certified, but these rows drift" in capsys.readouterr().out
    assert run(*words) == 0
    assert "In the order they came these rows drift" in capsys.readouterr().out
    run(*words, "--out", tmp_path / "c.json")
    page = (tmp_path / "c.json", "--score", "s", "--label", "y", "--out", tmp_path / "page.html")
    assert run("report", file, "--certificate", *page) == 0
    assert "In the order they came these rows drift" in (tmp_path / "page.html").read_text()
    capsys.readouterr()
    assert run("certify", write(tmp_path / "b.csv", 0.0), *words[2:]) == 0
    told = capsys.readouterr()
    assert "drift:" not in told.out + told.err


def write_table(path, drift, n=3000):
    random = np.random.default_rng(3)
    time = np.linspace(0, 1, n)
    labels = random.random(n) < 0.3
    amount = random.normal(size=n) + 2 * labels + drift * time
    age = random.normal(40, 9, n)
    lines = [f"{a!r},{e!r},{int(y)},{i}" for i, (a, e, y) in enumerate(
        zip(amount.tolist(), age.tolist(), labels, strict=True)
    )]  # fmt: skip
    path.write_text("\n".join(["amount,age,y,t", *lines]) + "\n")
    return path


def test_train_names_columns_that_move_and_refuses_rows_that_drift(tmp_path, capsys):
    words = ("--label", "y", "--goal", "maximize recall subject to fpr <= 0.2", "--model", "linear")
    more = ("--epochs", 3, "--no-baseline", "--time", "t")
    file = write_table(tmp_path / "a.csv", 20.0)  # the latest fifth, which certifies, moves by 4
    assert run("train", file, *words, *more, "--out", tmp_path / "run") == 1
    out, _ = capsys.readouterr()
    assert "these rows drift" in out
    report = (tmp_path / "run" / "report.html").read_text()
    assert "amount: 2." in report
    assert "age: 4" not in report
    again = ("--out", tmp_path / "other", "--accept-drift")
    run("train", file, *words, *more, *again)
    assert "certified, but these rows drift" in capsys.readouterr().out
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert run("train", file, *words, *more, "--out", tmp_path / "third") == 1
    assert "these rows drift" in capsys.readouterr().out  # the order of the file does not matter


def test_train_without_a_time_says_that_the_order_of_rows_matters(tmp_path, capsys):
    words = ("--label", "y", "--goal", "maximize recall subject to fpr <= 0.2", "--model", "linear")
    more = ("--epochs", 3, "--no-baseline", "--drop", "t", "--out", tmp_path / "run")
    run("train", write_table(tmp_path / "a.csv", 3.0), *words, *more)
    told, page = "".join(capsys.readouterr()), (tmp_path / "run" / "report.html").read_text()
    assert "In the order they came these rows drift" in told
    assert "In the order they came these rows drift" in page


@pytest.mark.parametrize("months", [2, 12])
def test_rows_of_one_time_may_be_sorted(months):
    scores, labels = rows()
    order = np.argsort(labels, kind="stable")
    times = np.random.default_rng(1).integers(months, size=len(scores))
    assert exchangeability(scores[order], labels[order], times=times)
    values = {"score": scores[order], "label": labels[order]}
    assert moving_columns(values, times=times) == []


def test_texts_that_move_are_told_as_they_are_in_the_file():
    (moved,) = moving_columns({"city": np.repeat(["x", "y"], 500)})
    assert str(moved) == "city: 100 % 'x' in the first fifth, 0 % 'x' in the last"
