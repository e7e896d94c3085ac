"""``setpoint train`` for several classes, which are called as the file calls them."""

import csv
import json
import shutil

import numpy as np
import pytest
from cli.shell import run
from safetensors.numpy import load_file

from setpoint.certificates import ClassCertificate

GOAL = 'maximize macro(recall) subject to recall of "<b>, x" >= 0.5'
NAMES = ("01", "02", "<b>, x")


def write_classes(path, rows=900, seed=0, names=NAMES):
    """Three classes of 60, 25 and 15 %, told apart by two numbers."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [2.5, 0], [0, 2.5]])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "sex", "kind"])
        for i in range(rows):
            k = rng.choice(3, p=[0.6, 0.25, 0.15])
            a, b = rng.normal(centres[k])
            writer.writerow([round(a, 4), round(b, 4), "fm"[i % 2], names[k]])
    return path


def train(data, out, *more, goal=GOAL):
    common = ("train", data, "--label", "kind", "--goal", goal, "--out", out, "--epochs", 10)
    return run(*common, "--model", "linear", *more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    data = write_classes(folder / "data.csv")
    test = write_classes(folder / "test.csv", rows=300, seed=1)
    assert train(data, folder / "run", "--test", test, "--group", "sex", "--use-protected") == 0
    return folder


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_says_what_its_classes_are_and_what_is_proved(made):
    described = json.loads((made / "run" / "run.json").read_text())
    assert described["classes"] == list(NAMES)  # as the file writes them: 01, not 1
    assert described["goal"] == GOAL
    found = ClassCertificate.from_json((made / "run" / "certificate.json").read_text())
    assert found.status == "certified"
    assert [claim.bound for claim in found.claims] == ['recall of "<b>, x" >= 0.5']
    assert sum(found.shifts) == pytest.approx(0, abs=1e-9)
    scores = load_file(made / "run" / "scores.safetensors")
    assert scores["test/scores"].shape == (300, 3)
    assert scores["calibration/baseline"].shape == scores["calibration/scores"].shape
    own = scores["calibration/labels"] == 2
    taken = (scores["calibration/scores"].astype(float) - found.shifts).argmax(1)
    assert found.claims[0].counts == f"{(taken[own] == 2).sum()} of {own.sum()}"


def test_predict_applies_the_shifts_and_calls_classes_as_the_file_does(made, capsys, tmp_path):
    out = tmp_path / "decisions.csv"
    assert run("predict", made / "run", made / "test.csv", "--out", out) == 0
    assert capsys.readouterr() == (f"300 decisions written to {out}.\n", "")
    rows = read(out)
    found = ClassCertificate.from_json((made / "run" / "certificate.json").read_text())
    scores = np.array([[row[f"score {name}"] for name in NAMES] for row in rows], np.float32)
    np.testing.assert_array_equal(
        scores, load_file(made / "run" / "scores.safetensors")["test/scores"]
    )
    expected = [NAMES[i] for i in (scores.astype(float) - found.shifts).argmax(1)]
    assert [row["decision"] for row in rows] == expected
    plain = [NAMES[i] for i in scores.argmax(1)]
    assert plain != expected  # the shifts do something
    assert np.mean([row["decision"] == row["kind"] for row in rows]) > 0.75


def test_the_report_is_drawn_again_the_same_without_torch(made, tmp_path):
    shutil.copytree(made / "run", tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Before: the highest score decides" in page
    assert "After: the highest shifted score decides" in page
    assert "&lt;b&gt;, x" in page
    assert "<b>," not in page
    (tmp_path / "run" / "report.html").unlink()
    assert run("report", tmp_path / "run") == 0
    assert (tmp_path / "run" / "report.html").read_text() == page


def test_a_goal_without_a_bound_is_done_and_said_to_promise_nothing(made, capsys, tmp_path):
    goal = "maximize macro(recall) subject to coverage of 2 at 0.2"  # 2 is the label 02, too
    assert train(made / "data.csv", tmp_path / "run", "--no-baseline", "--quiet", goal=goal) == 2
    assert "no class 2" in capsys.readouterr().err
    goal = 'maximize macro(recall) subject to coverage of "02" at 0.2'
    assert train(made / "data.csv", tmp_path / "run", "--no-baseline", "--quiet", goal=goal) == 0
    told = capsys.readouterr().out
    assert told.startswith("no certificate: maximize macro(recall)")
    assert "an exact value cannot be proved" in told
    out = tmp_path / "d.csv"
    assert run("predict", tmp_path / "run", made / "test.csv", "--out", out) == 0
    assert "They are not certified" in capsys.readouterr().err
    share = np.mean([row["decision"] == "02" for row in read(out)])
    assert 0.1 < share < 0.3


def test_numbers_as_labels_are_called_by_their_numeral(tmp_path, capsys):
    data = write_classes(tmp_path / "d.csv", names=("10", "9", "-1"))
    goal = "maximize macro(recall) subject to recall of 10 >= 0.5"
    assert train(data, tmp_path / "run", "--no-baseline", goal=goal) == 0
    assert "3 classes in 'kind'" in capsys.readouterr().err
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["classes"] == ["-1", "9", "10"]


def test_what_is_not_proved_is_1_and_such_a_run_does_not_decide(made, capsys, tmp_path):
    goal = 'minimize error subject to recall of "02" >= 0.999'
    assert train(made / "data.csv", tmp_path / "run", "--no-baseline", goal=goal) == 1
    assert capsys.readouterr().out.startswith("infeasible")
    out = tmp_path / "d.csv"
    assert run("predict", tmp_path / "run", made / "test.csv", "--out", out) == 1
    assert "has no certified shifts (infeasible)" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--goal", "maximize recall subject to fpr <= 0.1"], "train for a goal about classes"),
        (["--goal", 'maximize recall of "cow"'], "no class 'cow'; there are '01', '02', '<b>, x'"),
        (["--goal", "maximize auc_mu"], "it has no decisions to predict with"),
        (["--positive", "01"], "--positive is for two classes"),
        (
            ["--method", "pairwise"],
            "trains for goals about two classes; for several there are 'implicit'",
        ),
        (["--goal", 'maximize recall of "01" on planet="f"'], "planet"),
        (["--goal", "minimize cost([[0, 1], [1, 0]])"], "The cost matrix is of 2 classes"),
        (["--label", "a"], "too few rows: the "),
    ],
)
def test_mistakes_are_2_and_leave_nothing_behind(made, capsys, tmp_path, arguments, message):
    goal = "maximize macro(recall)" if "--label" in arguments else GOAL
    assert train(made / "data.csv", tmp_path / "run", *arguments, goal=goal) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()


def test_check_tells_whether_the_promise_holds_on_new_rows(made, capsys, tmp_path):
    folder = made / "run"
    labels = ("--label", "kind")
    assert run("check", folder, made / "test.csv", *labels) == 0
    told = capsys.readouterr().out
    assert told.startswith("ok: the new data fit the certificate")
    assert 'recall of "<b>, x" >= 0.5' in told
    assert run("check", folder, made / "test.csv", *labels, "--time", "a") == 0
    assert "measured from -" in capsys.readouterr().out
    assert run("check", folder, made / "test.csv") == 0
    assert "as many predictions of each class as expected" in capsys.readouterr().out
    rows = (made / "test.csv").read_text().splitlines()
    quoted = '"<b>, x"'
    other = {"01": quoted, quoted: "01"}
    ends = [next((end for end in other if row.endswith(f",{end}")), "") for row in rows]
    pairs = zip(rows, ends, strict=True)
    swapped = [row.removesuffix(end) + other.get(end, "") for row, end in pairs]
    (tmp_path / "swapped.csv").write_text("\n".join(swapped))
    assert run("check", folder, tmp_path / "swapped.csv", *labels) == 1
    assert capsys.readouterr().out.startswith("broken")
    one = [rows[0], *(row for row in rows if row.endswith(",02"))]
    (tmp_path / "one.csv").write_text("\n".join(one))
    assert run("check", folder, tmp_path / "one.csv") == 1
    assert capsys.readouterr().out.startswith("drift")
    for given, why in (
        ((folder, made / "test.csv", "--score", "a"), "its model scores the rows"),
        ((folder, made / "test.csv", "--positive", "01"), "--positive is for two classes"),
        ((folder, made / "test.csv", "--time", "a", "--by", "day"), "--by is for two classes"),
        ((folder / "certificate.json", made / "test.csv", "--score", "a"), "name its folder"),
    ):
        assert run("check", *given) == 2
        assert why in capsys.readouterr().err


def test_the_card_has_every_class_and_no_markup_of_the_file(made, capsys):
    assert run("card", made / "run") == 0
    card = capsys.readouterr().out
    assert card.startswith("# kind: which class\n")
    assert "Decisions are the highest of `score - shift`" in card
    assert "Neither the model nor the shifts were chosen by looking at these rows." in card
    assert "- status: certified" in card
    rows = [line.split(" | ") for line in card.splitlines() if line.startswith("| ")]
    splits = {row[0][2:]: row for row in rows if row[0][2:] in ("calibration", "test")}
    assert splits["test"][1] == "300"
    scores = load_file(made / "run" / "scores.safetensors")
    shifts = ClassCertificate.from_json((made / "run" / "certificate.json").read_text()).shifts
    decided = (scores["test/scores"].astype(float) - shifts).argmax(1)
    recalls = [(decided[scores["test/labels"] == k] == k).mean() for k in range(3)]
    assert float(splits["test"][2]) == pytest.approx(np.mean(recalls), abs=1e-4)
    (own,) = (row for row in rows if row[0].startswith("| &#60;b>, x"))
    assert float(own[3].split(" %")[0]) == pytest.approx(100 * recalls[2], rel=0.005)


def test_a_tampered_certificate_or_score_is_refused(made, capsys, tmp_path):
    shutil.copytree(made / "run", tmp_path / "run")
    path = tmp_path / "run" / "certificate.json"
    path.write_text(path.read_text().replace('"status": "certified"', '"status": "not certified"'))
    assert run("predict", tmp_path / "run", made / "test.csv", "--out", tmp_path / "d.csv") == 2
    assert "certificate.json is damaged" in capsys.readouterr().err


def test_new_rows_of_an_unknown_class_are_named(made, capsys, tmp_path):
    text = (made / "test.csv").read_text().replace(",02\n", ",03\n").replace(",02\r\n", ",03\r\n")
    (tmp_path / "t.csv").write_text(text)
    assert train(made / "data.csv", tmp_path / "run", "--test", tmp_path / "t.csv") == 2
    error = capsys.readouterr().err
    assert "the label is '03'; it must be one of '01', '02'" in error
