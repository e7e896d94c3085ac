"""Certificates of parquet files by streaming: byte for byte those of the same rows in memory."""

import json
import os
import signal
import time

import numpy as np
import pytest
from cli.shell import run
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint import certify
from setpoint.certificates import CannotPromise, copies, score_counts, streams
from setpoint.certificates.copies import keys_of
from setpoint.certificates.score_counts import ScoreCounts, StreamedScores
from setpoint.certificates.streams import certify_table
from setpoint.tables import TableError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

GOALS = [
    "fpr <= 0.05",
    "tnr >= 0.9",
    "recall >= 0.9",
    "fnr <= 0.2",
    "coverage <= 0.1",
    "coverage >= 0.2",
    "precision >= 0.8",
    "npv >= 0.9",
    "fpr <= 0.2 and recall >= 0.6",
    "fpr <= 0.1 and precision >= 0.7",
    "minimize fnr subject to fpr <= 0.0001",
    "maximize recall subject to precision >= 0.8",
]


def rows(seed, n=4000, *, ties=False, unlabelled=0.05):
    random = np.random.default_rng(seed)
    labels = (random.random(n) < 0.3).astype(float)
    scores = random.normal(size=n) + 1.5 * labels
    labels[random.random(n) < unlabelled] = np.nan
    return scores.round(1) if ties else scores, labels


def write(folder, files=3, **columns):
    folder.mkdir(exist_ok=True)
    count = len(next(iter(columns.values())))
    for number, part in enumerate(np.array_split(np.arange(count), files)):
        table = pa.table({name: np.asarray(values)[part] for name, values in columns.items()})
        pq.write_table(table, folder / f"{number:02}.parquet", row_group_size=700)
    return folder


@pytest.fixture(params=[40, 900, 2**22], ids=lambda most: f"{most} in memory")
def few_in_memory(request, monkeypatch):
    """Bins are refined to the last bit, to some bits, or read at once."""
    monkeypatch.setattr(score_counts, "MOST_SCORES", request.param)
    monkeypatch.setattr(copies, "MOST_SAMPLED", request.param)


@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
def test_the_certificate_is_that_of_the_rows_in_memory(tmp_path, few_in_memory, ties):
    scores, labels = rows(1, ties=ties)
    folder = write(tmp_path / "t", s=scores, y=labels)
    for goal in GOALS:
        for options in ({}, {"candidates": 3, "confidence": 0.9})[: 2 if ties else 1]:
            found = certify_table(folder, goal, score="s", label="y", **options)
            assert found.to_json() == certify(scores, labels, goal, **options).to_json(), goal
    mean = certify_table(folder, "fpr <= 0.05", score="s", label="y", guarantee="mean")
    assert mean.to_json() == certify(scores, labels, "fpr <= 0.05", guarantee="mean").to_json()
    share = certify_table(folder, "coverage <= 0.1", score="s")
    assert share.to_json() == certify(scores, None, "coverage <= 0.1").to_json()


@pytest.mark.parametrize("goal", ["fpr <= 0.1", "fpr <= 0.1 and recall >= 0.3"])
def test_a_threshold_for_each_group(tmp_path, few_in_memory, goal):
    scores, labels = rows(2, unlabelled=0)
    city = np.random.default_rng(0).choice(["Rome", "Oslo", "Bonn"], len(scores))
    folder = write(tmp_path / "t", s=scores, y=np.where(labels == 1, "yes", "no"), city=city)
    found = certify_table(folder, goal, score="s", label="y", group="city")
    assert found.to_json() == certify(scores, labels, goal, groups={"city": city}).to_json()
    sliced = certify_table(folder, 'fpr on city="Rome" <= 0.1', score="s", label="y", group="city")
    wanted = certify(scores, labels, 'fpr on city="Rome" <= 0.1', groups={"city": city})
    assert sliced.to_json() == wanted.to_json()


@pytest.mark.parametrize("most", [900, 2**22])
def test_copies_are_refused_as_in_memory(tmp_path, monkeypatch, most):
    monkeypatch.setattr(copies, "MOST_SAMPLED", most)
    scores, labels = (np.repeat(column, 3) for column in rows(3, unlabelled=0))
    folder = write(tmp_path / "t", s=scores, y=labels)
    with pytest.raises(CannotPromise) as streamed:
        certify_table(folder, "fpr <= 0.1", score="s", label="y")
    with pytest.raises(CannotPromise) as known:
        certify(scores, labels, "fpr <= 0.1")
    assert str(streamed.value) == str(known.value)


@pytest.mark.parametrize("kind", ["float32", "int64", "bool", "text"])
def test_columns_of_all_kinds(tmp_path, kind):
    scores, labels = rows(4, unlabelled=0)
    positive = labels == 1
    column = {
        "float32": labels.astype(np.float32),
        "int64": labels.astype(int),
        "bool": positive,
        "text": np.where(positive, "bad", "good"),
    }[kind]
    folder = write(tmp_path / "t", s=(100 * scores).astype(np.int32), y=column)
    named = {"positive": "bad"} if kind == "text" else {}
    found = certify_table(str(folder), "fpr <= 0.1", score="s", label="y", **named)
    memory = certify((100 * scores).astype(np.int32), labels, "fpr <= 0.1")
    assert found.to_json() == memory.to_json()


def test_a_pyarrow_dataset_and_one_file(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    scores, labels = rows(5)
    folder = write(tmp_path / "t", files=4, s=scores, y=labels)
    (folder / "deep").mkdir()
    (folder / "03.parquet").rename(folder / "deep" / "03.parquet")
    (folder / "_metadata.parquet").write_bytes(b"not a table")
    wanted = certify(scores, labels, "recall >= 0.9").to_json()
    options = {"score": "s", "label": "y"}
    assert certify_table(folder, "recall >= 0.9", **options).to_json() == wanted
    files = sorted(folder.rglob("0*.parquet"))
    given = dataset.dataset([str(file) for file in files])
    assert certify_table(given, "recall >= 0.9", **options).to_json() == wanted
    one = write(tmp_path / "one", files=1, s=scores, y=labels) / "00.parquet"
    assert certify_table(one, "recall >= 0.9", **options).to_json() == wanted


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["normal", "ties", "wide", "signs", "near"]),
    st.sampled_from([1, 7, 10**6]),
)
def test_streamed_scores_are_a_sorted_array(seed, kind, most):
    random = np.random.default_rng(seed)
    scores = random.normal(size=random.integers(1, 200))
    if kind == "ties":
        scores = scores.round(1)
    elif kind == "wide":
        scores = scores * 10.0 ** random.integers(-300, 300, len(scores))
    elif kind == "signs":
        scores = np.sign(scores) * 0.0  # -0.0 and 0.0 are one score
    elif kind == "near":  # all in one bin until the last bits
        scores = 1 + np.finfo(float).eps * random.integers(0, 9, len(scores))
    codes = random.integers(0, 2, len(scores))
    keys = keys_of(scores)
    before, score_counts.MOST_SCORES = score_counts.MOST_SCORES, most
    try:
        counts = ScoreCounts(lambda query: query.of(keys, codes, 2), 2)
        for categories in ((0,), (1,), (0, 1)):
            own = np.sort(scores[np.isin(codes, categories)]) + 0.0
            found = StreamedScores(counts, categories)
            assert len(found) == len(own)
            if len(own):
                np.testing.assert_array_equal(found[np.arange(len(own))], own)
                assert found[-1] == own[-1]
                with pytest.raises(IndexError):
                    found[len(own)]
            asked = np.concatenate([scores, scores + 0.1, [-np.inf, np.inf, 0.0]])
            for side in ("left", "right"):
                wanted = np.searchsorted(own, asked, side)
                np.testing.assert_array_equal(np.searchsorted(found, asked, side), wanted)
    finally:
        score_counts.MOST_SCORES = before


# the command


@pytest.fixture
def streamed(monkeypatch):
    monkeypatch.setattr(streams, "FEWEST_TO_STREAM", 1)
    asked = []
    ask = streams.StreamedTable.ask
    monkeypatch.setattr(
        streams.StreamedTable, "ask", lambda table, query: asked.append(query) or ask(table, query)
    )
    return asked


def test_the_command_writes_the_same_bytes(tmp_path, capsys, monkeypatch, request):
    scores, labels = rows(6)
    folder = write(tmp_path / "t", s=scores, y=labels)
    words = ("certify", folder, "--score", "s", "--label", "y", "--goal", "fpr <= 0.05")
    assert run(*words, "--out", tmp_path / "memory.json") == 0
    told = capsys.readouterr()
    asked = request.getfixturevalue("streamed")
    (tmp_path / "other").mkdir()
    assert run(*words, "--out", tmp_path / "other" / "stream.json") == 0
    assert asked
    assert capsys.readouterr() == told
    assert "rows without a label in 'y' left out, the first is row" in told.err
    memory, stream = (tmp_path / "memory.json", tmp_path / "other" / "stream.json")
    assert memory.read_bytes() == stream.read_bytes()


@pytest.mark.parametrize("turn", [1, -1])
def test_few_passes_are_enough_and_inverted_scores_are_told(tmp_path, streamed, monkeypatch, turn):
    monkeypatch.setattr(score_counts, "MOST_SCORES", 64)
    scores, labels = rows(9, 5000)
    folder = write(tmp_path / "t", s=turn * scores, y=labels)
    made = certify_table(folder, "fpr <= 0.1", score="s", label="y")
    assert len(streamed) < 12
    assert made.caveats == certify(turn * scores, labels, "fpr <= 0.1").caveats
    assert bool(made.caveats) == (turn < 0)


def test_goals_that_need_all_scores_go_to_memory(tmp_path, streamed):
    scores, labels = rows(7)
    folder = write(tmp_path / "t", s=scores, y=labels)
    words = ("certify", folder, "--score", "s", "--label", "y", "--goal", "f_score(1) >= 0.3")
    assert run(*words) == 0
    assert not streamed
    assert run(*words, "--ray") == 2
    with pytest.raises(CannotPromise, match="needs all scores in memory"):
        certify_table(folder, "f_score(1) >= 0.3", score="s", label="y")


def test_folders_that_cannot_be_read(tmp_path):
    def refused(path, match, **columns):
        columns = {"score": "s", "label": "y"} | columns
        with pytest.raises(TableError, match=match):
            certify_table(path, "fpr <= 0.1", **columns)

    scores, labels = rows(8, 900)
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "folder without parquet files")
    refused(tmp_path / "gone", "no such file")
    folder = write(tmp_path / "t", s=scores, y=labels)
    refused(folder, "no column 'x'", score="x")
    (folder / "01.parquet").write_bytes(b"PAR1 and nothing else")
    refused(folder, r"01.parquet: cannot be read as parquet")
    pq.write_table(pa.table({"s": ["high"], "y": [1.0]}), folder / "01.parquet")
    refused(folder, "01.parquet: column 's' is string, and double in '00.parquet'")
    pq.write_table(pa.table({"s": [1.0, np.nan], "y": [1.0, 0.0]}), folder / "01.parquet")
    refused(folder, r"01.parquet, row 2, column 's': the value is missing")
    pq.write_table(pa.table({"s": [1.0, 2.0], "y": [1.0, 7.0]}), folder / "01.parquet")
    refused(folder, "has 3: '0', '1', '7'")
    nothing = write(tmp_path / "nothing", files=1, s=np.empty(0), y=np.empty(0))
    refused(nothing, "no rows")
    csv = tmp_path / "s.csv"
    csv.write_text("s,y\n1,0\n")
    refused(csv, "only parquet")


def test_a_file_without_rows_is_no_harm(tmp_path):
    scores, labels = rows(9)
    folder = write(tmp_path / "t", s=scores, y=labels)
    pq.write_table(pa.table({"s": np.empty(0), "y": np.empty(0)}), folder / "000.parquet")
    found = certify_table(folder, "fpr <= 0.05", score="s", label="y")
    assert found.to_json() == certify(scores, labels, "fpr <= 0.05").to_json()


# Ray


def kill_once(part, columns, query):
    """The answer, after the worker of the second file has been killed once."""
    mark = part.path.with_suffix(".killed")
    if part.path.name == "01.parquet" and not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0)
    return streams.answer(part, columns, query)


@pytest.mark.slow
def test_workers_of_ray_and_one_that_is_killed(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    scores, labels = rows(10)
    folder = write(tmp_path / "t", s=scores, y=labels)
    words = ("certify", folder, "--score", "s", "--label", "y", "--goal", "fpr <= 0.05")
    assert run(*words, "--out", tmp_path / "memory.json") == 0
    (tmp_path / "other").mkdir()
    assert run(*words, "--ray", "--out", tmp_path / "other" / "ray.json") == 0
    known = (tmp_path / "memory.json").read_bytes()
    assert known == (tmp_path / "other" / "ray.json").read_bytes()
    of_parts = streams.StreamedTable._of_parts

    def killing(table, work, *given):
        return of_parts(table, kill_once if work is streams.answer else work, *given)

    monkeypatch.setattr(streams.StreamedTable, "_of_parts", killing)
    (tmp_path / "last").mkdir()
    assert run(*words, "--ray", "--out", tmp_path / "last" / "ray.json") == 0
    assert (folder / "01.killed").exists()
    assert json.loads(known) == json.loads((tmp_path / "last" / "ray.json").read_bytes())
