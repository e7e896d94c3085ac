"""A certificate of several classes is watched bound by bound, from Python and from the shell."""

import json

import numpy as np
import pytest
from cli.shell import run

from setpoint import Problem
from setpoint.certificates import certify_shifts
from setpoint.monitoring import ClassMonitor

NAMES = ("cat", "dog", "01")
GOAL = 'maximize accuracy subject to recall of "dog" >= 0.85 and accuracy >= 0.85'
COLUMNS = [word for name in "abc" for word in ("--score", name)]


def rows(n, seed, blur=1.0):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, n)
    return blur * random.normal(size=(n, 3)) + 3 * np.eye(3)[labels], labels


def certified(goal=GOAL, **more):
    return certify_shifts(*rows(4000, 0), Problem.parse(goal), np.zeros(3), classes=NAMES, **more)


def test_every_bound_is_watched_with_its_part_of_the_false_alarms():
    monitor = certified().monitor(0.04)
    assert list(monitor.parts) == ['recall of "dog" >= 0.85', "accuracy >= 0.85"]
    assert monitor.false_alarm == pytest.approx(0.04)
    scores, labels = rows(1500, 1)
    known = labels.astype(float)
    known[:100] = np.nan
    assert monitor.update(scores, known) == "holds"
    decided = scores.argmax(1)
    dogs, every = (part.rates[0] for part in monitor.parts.values())
    late = np.arange(1500) >= 100
    hits = (decided == 1)[late & (labels == 1)]
    assert every.value == pytest.approx((decided == labels)[late].mean())
    assert monitor.rows == 1500
    again = ClassMonitor.from_json(monitor.to_json())
    status = again.update(*rows(1500, 2, blur=2.0))
    assert status.startswith('recall of "dog" >= 0.85: broken since update 2')
    assert "accuracy >= 0.85: broken since update 2" in status
    assert dogs.value == pytest.approx(hits.mean(), abs=0.02)


def test_at_the_limit_few_monitors_ever_alarm():
    """Decisions are right with the probability that is promised, looked at every day."""
    goal = Problem.parse("maximize accuracy subject to lowest(recall) >= 0.8")
    random = np.random.default_rng(0)

    def decided(n, right):
        labels = random.integers(0, 3, n)
        wrong = (labels + random.integers(1, 3, n)) % 3
        return np.eye(3)[np.where(random.random(n) < right, labels, wrong)], labels

    alarms = 0
    for _ in range(20):
        made = certify_shifts(*decided(3000, 0.85), goal, np.zeros(3), classes=NAMES)
        monitor = made.monitor()
        for _ in range(10):
            monitor.update(*decided(200, 0.8))
        broken = [part for part in monitor.parts.values() if part.verdict == "broken"]
        alarms += bool(broken)
    assert alarms <= 4  # 5 % of 20, and three standard errors


def test_what_cannot_be_watched_says_so():
    costs = "maximize accuracy subject to cost([[0, 1, 1], [1, 0, 1], [1, 1, 0]]) <= 0.3"
    with pytest.raises(ValueError, match="mean of a cost matrix, which has no monitor"):
        certified(costs).monitor()
    with pytest.raises(ValueError, match="nothing to watch, the goal is not certified"):
        certified('maximize accuracy subject to recall of "dog" >= 0.99').monitor()
    monitor = certified().monitor()
    with pytest.raises(ValueError, match="from 0 to 2, or NaN; got 3 in row 1"):
        monitor.update(rows(2, 0)[0], [0, 3])
    with pytest.raises(ValueError, match="NaN; got 'dog' in row 1: 'dog' is column 1"):
        monitor.update(rows(2, 0)[0], [None, "dog"])
    with pytest.raises(ValueError, match=r"labels must have the shape of the scores, \(2,\)"):
        monitor.update(rows(2, 0)[0], [0])
    with pytest.raises(ValueError, match="counts right and wrong decisions"):
        monitor.add_labels(["a"], [1])


@pytest.fixture
def place(tmp_path):
    (tmp_path / "c.json").write_text(certified().to_json())
    return tmp_path


def write(path, seed, blur=1.0, day=1):
    scores, labels = rows(800, seed, blur)
    lines = ["a,b,c,kind,t"]
    for i in range(800):
        label = "" if i % 50 == 0 else NAMES[labels[i]]
        lines.append(",".join([*map(repr, scores[i].tolist()), label, f"2024-05-{day:02d}"]))
    path.write_text("\n".join(lines))
    return path


def test_from_a_shell(place, capsys):
    words = (*COLUMNS, "--label", "kind", "--time", "t", "--state", place / "state.json")
    assert run("watch", place / "c.json", write(place / "1.csv", 1), *words) == 0
    assert run("watch", place / "c.json", place / "1.csv", *words, "--json") == 0
    told = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert (told["counted"], told["rows"]) == (0, 800)
    worse = write(place / "2.csv", 2, blur=2.0, day=2)
    assert run("watch", place / "c.json", worse, *words) == 1
    assert "broken since 2024-05-02" in capsys.readouterr().out
    assert run("watch", place / "c.json", worse, *words[2:]) == 2
    assert "about the classes cat, dog, 01: add --score for" in capsys.readouterr().err
    assert run("watch", place / "c.json", worse, *words, "--positive", "dog") == 2
    capsys.readouterr()
    assert run("check", place / "c.json", worse, *words[:8]) == 2
    assert "scores of each class are for `setpoint watch`" in capsys.readouterr().err
    (place / "3.csv").write_text("a,b,c,kind,t\n1,2,3,cow,2024-05-03\n")
    assert run("watch", place / "c.json", place / "3.csv", *words) == 2
    assert "the label is 'cow'; it must be one of" in capsys.readouterr().err
