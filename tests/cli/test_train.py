import csv
import json
import shutil

import numpy as np
import pytest
from cli.shell import run, write_data
from safetensors.numpy import load_file, save_file

from setpoint.certificates import Certificate
from setpoint.runs.folder import _digest

GOAL = "maximize recall subject to fpr <= 0.1"
FILES = {
    "run.json",
    "certificate.json",
    "model.safetensors",
    "history.jsonl",
    "scores.safetensors",
    "report.html",
}


def train(data, out, *more, goal=GOAL):
    common = ("train", data, "--label", "churn", "--goal", goal, "--out", out, "--epochs", 3)
    return run(*common, *more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with data, a test file and a run; tests copy what they change."""
    folder = tmp_path_factory.mktemp("trained")
    data = write_data(folder / "data.csv")
    test = write_data(folder / "test.csv", rows=300, seed=1)
    options = ("--test", test, "--group", "sex", "--use-protected", "--model", "mlp")
    assert train(data, folder / "run", *options) == 0
    return folder


@pytest.fixture
def copy(made, tmp_path):
    """A run that may be broken."""
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def test_a_run_has_all_its_files_and_no_pickle(made):
    assert {path.name for path in (made / "run").iterdir()} == FILES
    described = json.loads((made / "run" / "run.json").read_text())
    assert "the group 'sex' is learned from as well." in described["notes"]
    assert (described["negative"], described["positive"]) == ("no", "yes")
    assert [c["name"] for c in described["columns"]] == ["age", "city", "sex"]
    history = [json.loads(x) for x in (made / "run" / "history.jsonl").read_text().splitlines()]
    assert [entry["epoch"] for entry in history] == [1, 2, 3]
    certificate = Certificate.from_json((made / "run" / "certificate.json").read_text())
    assert certificate.status == "certified"


def test_the_oddities_of_the_data_are_reported(made, capsys, tmp_path):
    assert train(made / "data.csv", tmp_path / "run", "--no-baseline", "--model", "linear") == 0
    out, error = capsys.readouterr()
    assert out.startswith("certified")
    assert "1,200 rows, 3 columns to learn from" in error
    assert "'customer_id' left out: it looks like an identifier" in error
    assert "'fixed' left out: it is constant" in error
    assert "missing values in 'age' filled in and marked" in error
    page = (tmp_path / "run" / "report.html").read_text()
    assert "it is constant" in page


def test_the_page_of_a_run_speaks_the_words_of_the_task(made, capsys, tmp_path):
    rows = list(csv.reader((made / "data.csv").read_text().splitlines()))
    with (tmp_path / "dated.csv").open("w", newline="") as file:
        days = [f"2026-01-{1 + 30 * i // len(rows):02d}" for i in range(len(rows))]
        csv.writer(file).writerows(
            [*row, day] for row, day in zip(rows, ["day", *days[1:]], strict=True)
        )
    words = ("--positive-name", "leavers", "--negative-name", "loyal customers", "--action", "call")
    more = ("--costs", "500", "5", "--time", "day", "--accept-drift", "--no-baseline")
    train(tmp_path / "dated.csv", tmp_path / "run", *words, *more, "--model", "linear")
    shown = (tmp_path / "run" / "report.html").read_text()
    assert "At most 1 in 10 loyal customers is called: proved" in shown
    for part in ("<dt>Alerts a day</dt>", "<dt>Cost a day</dt>", "30 January 2026"):
        assert part in shown
    assert run("report", tmp_path / "run", "--force") == 0  # they are kept in the run
    again = (tmp_path / "run" / "report.html").read_text()
    assert again.split("<main>")[1] == shown.split("<main>")[1]
    capsys.readouterr()
    goal = "maximize macro(recall)"
    assert train(made / "data.csv", tmp_path / "more", *words[:2], goal=goal) == 2
    assert "--positive-name" in capsys.readouterr().err


def test_goals_about_groups_are_trained_and_certified(made, capsys, tmp_path):
    goal = 'maximize recall subject to fpr on sex="f" <= 0.1 and fpr on sex="m" <= 0.12'
    more = ("--drop", "sex", "--no-baseline", "--test", made / "test.csv")  # the goal names it
    assert train(made / "data.csv", tmp_path / "run", *more, goal=goal) == 0
    told = capsys.readouterr().out
    assert told.startswith("certified: maximize recall subject to")
    certificate = Certificate.from_json((tmp_path / "run" / "certificate.json").read_text())
    assert [claim.bound for claim in certificate.claims] == [
        'fpr on sex="f" <= 0.1',
        'fpr on sex="m" <= 0.12',
    ]
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [c["name"] for c in described["columns"]] == ["age", "city"]
    out = tmp_path / "decisions.csv"
    assert run("predict", tmp_path / "run", made / "test.csv", "--out", out) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for sex, most in (("f", 0.1), ("m", 0.12)):
        alarms = [r["decision"] == "yes" for r in rows if r["sex"] == sex and r["churn"] == "no"]
        assert np.mean(alarms) <= most


@pytest.mark.parametrize(("model", "share"), [("auto", 0.8), ("linear", 0.2)])
def test_rows_scored_by_models_that_have_not_seen_them_choose(
    made, tmp_path, monkeypatch, model, share
):
    """Of a cross-fitted model all rows to learn from choose the thresholds of groups."""
    from setpoint.runs import training

    certify_groups, chosen = training.certify_groups, []

    def spy(problem, chosen_on, *given, **more):
        chosen.append(len(chosen_on[1]))
        return certify_groups(problem, chosen_on, *given, **more)

    monkeypatch.setattr(training, "certify_groups", spy)
    goal = "minimize error subject to demographic_parity(0.3, sex=[f, m]) with thresholds per group"
    options = ("--group", "sex", "--model", model, "--epochs", 2, "--no-baseline")
    train(made / "data.csv", tmp_path / "run", *options, goal=goal)
    assert chosen[0] / 1200 == pytest.approx(share, abs=0.05)


def test_every_method_has_a_name(made, tmp_path):
    from setpoint.solvers import METHODS

    models = {}
    for method in (*METHODS, "auto"):
        out = tmp_path / method
        assert train(made / "data.csv", out, "--method", method, "--no-baseline", "--quiet") == 0
        assert json.loads((out / "run.json").read_text())["method"] == method
        models.setdefault((out / "model.safetensors").read_bytes(), set()).add(method)
    same = [names - {"auto"} for names in models.values() if len(names - {"auto"}) > 1]
    known = [  # one method by two names, and two that agree while no bound is active
        {"fico_1", "last_layer"},
        {"proxy_lagrangian", "tfco"},
        {"barrier", "barrier_printed"},
    ]
    assert all(names in known for names in same), same


def diverging(good_steps):
    """A method whose loss is NaN after so many steps."""
    from setpoint.solvers import Method, cross_entropy

    done = []

    def criterion(scores, labels, weights=None):
        done.append(1)
        return cross_entropy(scores, labels) * (1.0 if len(done) <= good_steps else float("nan"))

    return Method(lambda problem, steps: criterion)


def test_history_has_no_nan_where_training_diverges(made, tmp_path, monkeypatch):
    from setpoint.solvers import METHODS

    monkeypatch.setitem(METHODS, "diverging", diverging(4))
    options = ("--model", "linear", "--method", "diverging", "--no-baseline", "--batch-size", 200)
    assert train(made / "data.csv", tmp_path / "run", *options) == 0  # the first pass is kept
    text = (tmp_path / "run" / "history.jsonl").read_text()
    assert [entry["loss"] is None for entry in map(json.loads, text.splitlines())] == [
        False,
        True,
        True,
    ]
    assert "NaN" not in text


def test_a_model_that_never_scores_is_one_line(made, tmp_path, capsys, monkeypatch):
    from setpoint.solvers import METHODS

    monkeypatch.setitem(METHODS, "diverging", diverging(0))
    assert train(made / "data.csv", tmp_path / "run", "--method", "diverging", "--quiet") == 2
    error = capsys.readouterr().err
    assert "Scores must be finite" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_the_same_seed_gives_the_same_run(made, tmp_path):
    options = ("--group", "sex", "--use-protected", "--no-baseline", "--model", "mlp")
    assert train(made / "data.csv", tmp_path / "again", *options) == 0
    for name in ("model.safetensors", "certificate.json"):
        assert (tmp_path / "again" / name).read_bytes() == (made / "run" / name).read_bytes()


def test_a_bound_alone_is_a_goal_as_it_is_for_certify(made, tmp_path):
    options = ("--group", "sex", "--use-protected", "--no-baseline", "--model", "mlp")
    assert train(made / "data.csv", tmp_path / "bound", *options, goal="FPR at most 10 %") == 0
    for name in ("model.safetensors", "certificate.json"):
        assert (tmp_path / "bound" / name).read_bytes() == (made / "run" / name).read_bytes()


def test_predict_decides_as_the_certificate_says(made, capsys, tmp_path):
    out = tmp_path / "decisions.csv"
    assert run("predict", made / "run", made / "test.csv", "--out", out) == 0
    assert capsys.readouterr().out == f"300 decisions written to {out}.\n"
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    certificate = Certificate.from_json((made / "run" / "certificate.json").read_text())
    scores = np.array([row["score"] for row in rows], dtype=np.float32)
    decided = np.array([row["decision"] for row in rows]) == "yes"
    np.testing.assert_array_equal(decided, certificate.decide(scores))
    np.testing.assert_array_equal(scores, load_file(made / "run/scores.safetensors")["test/scores"])
    assert [row["customer_id"] for row in rows] == [f"c{i}" for i in range(300)]
    assert rows[0]["city"] in ("Rome", "Oslo", '"<script>", x')


def test_check_scores_with_the_model_of_the_run(made, capsys):
    assert run("check", made / "run", made / "test.csv", "--label", "churn") == 0
    assert capsys.readouterr().out.startswith("ok")


def test_report_is_drawn_again_the_same(copy, made):
    (copy / "report.html").unlink()
    assert run("report", copy) == 0
    assert (copy / "report.html").read_text() == (made / "run" / "report.html").read_text()


def test_card_is_printed_or_written_but_never_over_a_file(made, tmp_path, capsys):
    assert run("card", made / "run") == 0
    printed = capsys.readouterr().out
    assert "maximize recall subject to" in printed
    file = tmp_path / "MODEL_CARD.md"
    assert run("card", made / "run", "--out", file) == 0
    assert file.read_text().strip() == printed.strip()
    assert run("card", made / "run", "--out", file) == 2
    assert "exists; name another file" in capsys.readouterr().err


def test_a_run_is_not_overwritten_without_force(made, copy, capsys):
    before = (copy / "run.json").read_bytes()
    assert train(made / "data.csv", copy) == 2
    error = capsys.readouterr().err
    assert "holds results already" in error
    assert error.count("\n") == 1  # told before training, not after
    assert (copy / "run.json").read_bytes() == before
    assert train(made / "data.csv", copy, "--force", "--seed", 5, "--no-baseline", "--quiet") in (
        0,
        1,
    )
    assert (copy / "run.json").read_bytes() != before
    assert capsys.readouterr().err == ""


def test_not_certified_is_1_and_such_a_run_does_not_decide(made, capsys, tmp_path):
    goal = "maximize recall subject to fpr <= 0.001"
    assert train(made / "data.csv", tmp_path / "run", "--no-baseline", goal=goal) == 1
    assert "needs 2,995 negatives" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES
    out = tmp_path / "decisions.csv"
    assert run("predict", tmp_path / "run", made / "test.csv", "--out", out) == 1
    assert "has no certified threshold (infeasible)" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "gone"], "no column 'gone' (--label)"),
        (["--label", "city", "--positive", "Rome"], "two different values; this one has 3"),
        (["--group", "gone"], "no column 'gone' (--group)"),
        (["--test", "gone.csv"], "gone.csv: no such file"),
        (["--drop", "gone"], "no column 'gone' (--drop)"),
        (["--goal", "maximize recall"], "has no bound that can be certified"),
        (["--goal", "fpr"], "This can be read: minimize fpr"),
        (["--method", "magic"], "method must be one of 'implicit'"),
        (["--goal", "minimize error subject to fpr on sex=f & a=1 <= 0.1"], "takes one column"),
        (
            ["--goal", 'minimize error subject to fpr on sex="x" <= 0.1', "--group", "sex"],
            "column 'sex': the goal asks about 'x', which the train part does not have; it has 'f'",
        ),
        (
            ["--goal", f"{GOAL} with thresholds per group", "--group", "sex"],
            "several thresholds and no gap between groups",
        ),
        (["--goal", "maximize recall subject to fpr <= 1"], "holds for every threshold"),
        (["--out", ".."], "name the folder itself"),
        (["--learning-rate", "-1"], "must be a positive number"),
        (["--epochs", "0"], "must be a whole number of at least 1"),
        (["--seed", "x"], "must be a whole number of at least 0"),
    ],
)
def test_mistakes_are_2_and_leave_nothing_behind(made, capsys, tmp_path, arguments, message):
    assert train(made / "data.csv", tmp_path / "run", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_too_few_rows(capsys, tmp_path):
    assert train(write_data(tmp_path / "d.csv", rows=60), tmp_path / "run") == 2
    assert "too few rows: the " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Rome", "Paris", "column 'city': the category 'Paris' did not occur in training"),
        ("Rome", "Paris", "Train with such rows, or leave them out."),
        (",age,", ",years,", "columns of training are missing: 'age'; add them"),
        (",f,", ",,", "column 'sex': a missing value did not occur in training"),
    ],
)
def test_new_rows_that_do_not_fit_are_named(made, capsys, tmp_path, old, new, message):
    changed = tmp_path / "new.csv"
    changed.write_text((made / "test.csv").read_text().replace(old, new))
    assert run("predict", made / "run", changed, "--out", tmp_path / "d.csv") == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(changed) in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_columns_of_the_same_name_are_kept_and_no_cell_is_changed(made, tmp_path):
    note, name = '=cmd|" /C calc"!A0', "@SUM(1)"
    new = write_data(tmp_path / "new.csv", rows=5, seed=2, **{name: note, "score": "NA"})
    out = tmp_path / "decisions.csv"
    assert run("predict", made / "run", new, "--out", out) == 0
    with new.open(newline="") as before, out.open(newline="") as after:
        old, rows = list(csv.reader(before)), list(csv.reader(after))
    assert rows[0][-2:] == ["setpoint_score", "decision"]
    assert [row[:-2] for row in rows] == old


def test_the_file_that_is_read_is_not_written(made, capsys, tmp_path):
    new = write_data(tmp_path / "new.csv", rows=5)
    before = new.read_text()
    assert run("predict", made / "run", new, "--out", new) == 2
    assert "is the file to read" in capsys.readouterr().err
    assert new.read_text() == before


def test_script_in_names_is_text_in_the_report(tmp_path):
    data = write_data(tmp_path / "d.csv")
    text = data.read_text().replace("age", "<script>alert(1)</script>", 1)
    data.write_text(text.replace("churn", "</title><script>", 1).replace("yes", "<img src=x>"))
    label = ("--label", "</title><script>", "--positive", "<img src=x>")
    assert train(data, tmp_path / "run", *label, "--no-baseline", "--group", "city") == 0
    page = (tmp_path / "run" / "report.html").read_text().lower()
    assert "<script>alert" not in page
    assert "</title><script>" not in page
    assert "<img src=x" not in page


def damaged(run_folder, name):
    path = run_folder / name
    content = path.read_bytes()
    return {
        "truncated": lambda: path.write_bytes(content[: len(content) // 2]),
        "empty": lambda: path.write_bytes(b""),
        "pickle": lambda: path.write_bytes(b"\x80\x04cos\nsystem\n(S'true'\ntR."),
        "flipped": lambda: path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]),
        "gone": path.unlink,
        "link": lambda: (path.rename(run_folder.parent / "away"), path.symlink_to("../away")),
    }


@pytest.mark.parametrize("how", ["truncated", "empty", "pickle", "flipped", "gone", "link"])
@pytest.mark.parametrize("name", ["run.json", "certificate.json", "model.safetensors"])
def test_a_tampered_run_is_refused(made, copy, capsys, tmp_path, name, how):
    damaged(copy, name)[how]()
    out = tmp_path / "decisions.csv"
    assert run("predict", copy, made / "test.csv", "--out", out) == 2
    error = capsys.readouterr().err
    assert str(copy / name) in error
    assert error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("name", ["scores.safetensors", "history.jsonl"])
def test_a_report_is_not_drawn_from_damaged_files(copy, capsys, name):
    before = (copy / "report.html").read_bytes()
    damaged(copy, name)["truncated"]()
    assert run("report", copy) == 2
    assert str(copy / name) in capsys.readouterr().err
    assert (copy / "report.html").read_bytes() == before


def forge(folder, name, content):
    """Put another file into a run, with a digest that fits."""
    import hashlib

    (folder / name).write_bytes(content)
    described = json.loads((folder / "run.json").read_text())
    del described["digest"]
    described["files"][name] = f"sha256:{hashlib.sha256(content).hexdigest()}"
    described["digest"] = _digest(described)
    (folder / "run.json").write_text(json.dumps(described))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.pop("0.weight"),
        lambda t: t.update(more=np.zeros(3, np.float32)),
        lambda t: t.update({"0.weight": np.zeros((64, 99), np.float32)}),
        lambda t: t.update({"2.bias": np.full(1, np.nan, np.float32)}),
        lambda t: t.update({"2.bias": np.zeros(1, np.float64)}),
    ],
    ids=["less", "more", "shape", "nan", "dtype"],
)
def test_weights_that_do_not_fit_are_refused_though_the_digest_does(
    made, copy, capsys, tmp_path, change
):
    tensors = load_file(copy / "model.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "forged")
    forge(copy, "model.safetensors", (tmp_path / "forged").read_bytes())
    assert run("predict", copy, made / "test.csv", "--out", tmp_path / "d.csv") == 2
    error = capsys.readouterr().err
    assert "model.safetensors" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", ["model.safetensors", "scores.safetensors", "certificate.json"])
def test_garbage_with_a_digest_that_fits_is_refused(made, copy, capsys, tmp_path, name):
    forge(copy, name, b"\xff" * 100)
    out = tmp_path / "d.csv"
    predicting = ("predict", copy, made / "test.csv", "--out", out)
    assert run(*(("report", copy) if name.startswith("scores") else predicting)) == 2
    error = capsys.readouterr().err
    assert name in error
    assert error.count("\n") == 1


def test_a_huge_header_is_not_believed(made, copy, capsys, tmp_path):
    forge(copy, "model.safetensors", (2**60).to_bytes(8, "little") + b"{}")
    assert run("predict", copy, made / "test.csv", "--out", tmp_path / "d.csv") == 2
    assert "is damaged" in capsys.readouterr().err


def test_decisions_are_not_written_over_a_file_unasked(made, capsys, tmp_path):
    out = tmp_path / "decisions.csv"
    out.write_text("last month's")
    predicting = ("predict", made / "run", made / "test.csv", "--out", out)
    assert run(*predicting) == 2
    assert "exists; name another file, or replace it by --force" in capsys.readouterr().err
    assert out.read_text() == "last month's"
    assert run(*predicting, "--force") == 0
    assert len(out.read_text().splitlines()) == 301


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--group", "gender"), "there is no column 'gender' (--group); the columns are"),
        (("--test", "nowhere.csv"), "no such file"),
        (("--test", "other.csv"), "other.csv: there is no column 'churn' (--label)"),
        (
            ("--test", "short.csv", "--group", "sex"),
            "short.csv: there is no column 'sex' (--group)",
        ),
    ],
)
def test_columns_and_files_that_are_missing_are_told_before_a_row_is_read(
    made, capsys, tmp_path, monkeypatch, more, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "short.csv").write_text("age,churn\n1,yes\n")
    assert train(made / "data.csv", tmp_path / "run", *more) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Reading" not in error
