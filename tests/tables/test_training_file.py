import json

import numpy as np
import pytest

from setpoint.tables import TableError, open_table
from setpoint.tables.features import read_encoder
from setpoint.tables.training_file import (
    PART_NAMES,
    DealtRows,
    Shares,
    read_all,
    read_parts,
    survey,
)

ROWS = 400


def write(path, columns):
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]))
    return open_table(path)


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return {
        "y": rng.integers(0, 2, ROWS),
        "x": rng.normal(5, 3, ROWS).round(4),
        "gap": ["" if i % 10 == 0 else i % 7 for i in range(ROWS)],
        "city": [["Rome", "Oslo"][i % 2] for i in range(ROWS)],
        "maybe": [["", "p", "q"][i % 3] for i in range(ROWS)],
        "same": [7] * ROWS,
        "word": ["w"] * ROWS,
        "empty": [""] * ROWS,
        "customer_id": rng.permutation(ROWS) + 1000,
        "row": range(ROWS),
        "token": [f"t{i}" for i in range(ROWS)],
        "many": [f"m{i // 2 if i < 398 else 0}" for i in range(ROWS)],
    }


def test_each_column_gets_its_role_and_every_oddity_a_note(tmp_path, columns, monkeypatch):
    monkeypatch.setattr("setpoint.tables.features.MOST_CATEGORIES", 100)
    seen = survey(write(tmp_path / "t.csv", columns), "y", Shares(0))
    assert seen.encoder.names == ("x", "gap", "city", "maybe")
    assert seen.encoder.width == 1 + 2 + 2 + 3
    assert seen.rows == ROWS
    for part in (
        "40 missing values in 'gap' filled in and marked",
        "134 missing values in 'maybe': a category",
        "'same' left out: it is constant",
        "'word' left out: it is constant",
        "'empty' left out: it has no values",
        "'customer_id' left out: it looks like an identifier",
        "'row' left out: it looks like an identifier",
        "'token' left out: it looks like an identifier",
        "'many' left out: 199 different texts",
    ):
        assert part in " ".join(seen.notes)


def test_a_column_can_be_kept_or_dropped(tmp_path, columns):
    source = write(tmp_path / "t.csv", columns)
    seen = survey(source, "y", Shares(0), keep=["row"], drop=["x", "many"])
    assert seen.encoder.names == ("gap", "city", "maybe", "row")
    with pytest.raises(TableError, match=r"no column 'z' \(--drop\)"):
        survey(source, "y", Shares(0), drop=["z"])


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_the_index_of_a_data_frame_is_no_feature(tmp_path, columns, name):
    kept = {"y": columns["y"], "x": columns["x"], name: np.arange(ROWS)[::-1] * 3}  # filtered rows
    source = write(tmp_path / "t.csv", kept)
    seen = survey(source, "y", Shares(0))
    assert seen.encoder.names == ("x",)
    assert seen.notes == (f"column '{source.names[2]}' left out: an index; --keep uses it.",)
    assert len(survey(source, "y", Shares(0), keep=[source.names[2]]).encoder.names) == 2


def test_few_rows_are_no_evidence_of_an_identifier(tmp_path):
    source = write(tmp_path / "t.csv", {"y": [0, 1] * 5, "x": range(10)})
    assert survey(source, "y", Shares(0)).encoder.names == ("x",)


def test_a_measurement_is_no_identifier(tmp_path):
    x = np.random.default_rng(0).normal(size=ROWS)
    source = write(tmp_path / "t.csv", {"y": [0, 1] * (ROWS // 2), "x": x})
    assert survey(source, "y", Shares(0)).encoder.names == ("x",)


def test_nothing_to_learn_from(tmp_path):
    source = write(tmp_path / "t.csv", {"y": [0, 1], "x": [1, 1]})
    with pytest.raises(TableError, match=r"no column is left to learn from \(column 'x'"):
        survey(source, "y", Shares(0))


def test_an_infinite_value_is_named(tmp_path):
    source = write(tmp_path / "t.csv", {"y": [0, 1, 0], "x": [1, 2, "inf"]})
    with pytest.raises(TableError, match="row 4, column 'x': the value is infinite"):
        survey(source, "y", Shares(0))


@pytest.mark.parametrize("chunk", [7, 65_536])
def test_a_slip_in_a_column_of_numbers_is_named(tmp_path, columns, monkeypatch, chunk):
    monkeypatch.setattr("setpoint.tables.table.CHUNK_ROWS", chunk)
    x = columns["x"].astype(object)
    x[150] = "3;14"
    table = write(tmp_path / "t.csv", {**columns, "x": x})
    with pytest.raises(TableError, match="row 152, column 'x': '3;14' is no number, and nearly"):
        survey(table, "y", Shares(0))
    x[x != "3;14"] = np.arange(ROWS - 1) % 5
    table = write(tmp_path / "t.csv", {**columns, "x": x})
    assert survey(table, "y", Shares(0), keep=["x"]).encoder.columns[0].values[:2] == ("0", "1")


def test_words_that_are_no_slips_make_a_category(tmp_path, columns):
    x = (np.arange(ROWS) % 5).astype(object)
    x[::20] = "unknown"
    table = write(tmp_path / "t.csv", {**columns, "x": x})
    assert "unknown" in survey(table, "y", Shares(0)).encoder.columns[0].values


def test_features_do_not_depend_on_the_size_of_chunks(tmp_path, columns, monkeypatch):
    source = write(tmp_path / "t.csv", columns)
    results = []
    for size in (ROWS, 33):
        monkeypatch.setattr("setpoint.tables.table.CHUNK_ROWS", size)
        seen = survey(source, "y", Shares(3))
        deal = Shares(3).dealer()
        with read_parts(source, "y", seen.classes, seen.encoder, deal, ROWS, "city") as parts:
            results.append([(np.array(p.x), p.y, p.groups) for p in parts])
    for (x, y, groups), (x2, y2, groups2) in zip(*results, strict=True):
        np.testing.assert_allclose(x, x2, rtol=1e-6, atol=1e-6)
        assert y.tolist() == y2.tolist()
        assert groups.tolist() == groups2.tolist()


def test_only_training_rows_are_standardised_by(tmp_path, columns):
    source = write(tmp_path / "t.csv", columns)
    seen = survey(source, "y", Shares(0))
    deal = Shares(0).dealer()
    with read_parts(source, "y", seen.classes, seen.encoder, deal, ROWS) as parts:
        train, *others = parts
        assert sum(map(len, parts)) == ROWS
        assert len(PART_NAMES) == len(parts)
        np.testing.assert_allclose(train.x[:, 0].mean(), 0, atol=1e-6)
        np.testing.assert_allclose(train.x[:, 0].std(), 1, atol=1e-6)
        assert abs(others[1].x[:, 0].mean()) > 1e-3


def test_large_features_go_to_disk_and_are_the_same(tmp_path, columns, monkeypatch):
    source = write(tmp_path / "t.csv", columns)
    seen = survey(source, "y", Shares(0))
    found = []
    for most in (2**30, 0):
        monkeypatch.setattr("setpoint.tables.training_file.IN_MEMORY", most)
        with read_all(source, "y", seen.classes, seen.encoder) as (part,):
            assert isinstance(part.x, np.memmap) == (most == 0)
            found.append(np.array(part.x))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"city": ["Paris", "Rome"]}, "row 2, column 'city': the category 'Paris' did not occur"),
        (
            {"maybe": ["p", "new"]},
            "with such rows, empty the cell (empty ones did occur), or leave",
        ),
        ({"city": ["Rome", ""]}, "row 3, column 'city': a missing value did not occur in training"),
        ({"x": ["1", "tall"]}, "row 3, column 'x': 'tall' is not a finite number"),
        ({"x": ["inf", "1"]}, "row 2, column 'x': 'inf' is not a finite number"),
        ({"x": ["1", ""]}, "row 3, column 'x': the value is missing, and in training none was"),
        ({"x": None}, "columns of training are missing: 'x'; add them"),
    ],
)
def test_new_rows_must_look_like_training(tmp_path, columns, change, message):
    seen = survey(write(tmp_path / "t.csv", columns), "y", Shares(0), drop=["many"])
    new = {"x": ["1", "2"], "gap": ["", "3"], "city": ["Rome", "Oslo"], "maybe": ["p", ""]}
    seen_ok = list(seen.encoder.chunks(write(tmp_path / "ok.csv", new)))
    assert seen_ok[0][1].shape == (2, seen.encoder.width)
    new = {name: column for name, column in (new | change).items() if column is not None}
    with pytest.raises(TableError) as error:
        list(seen.encoder.chunks(write(tmp_path / "new.csv", new)))
    assert message in str(error.value)


def test_an_encoder_survives_json(tmp_path, columns):
    encoder = survey(write(tmp_path / "t.csv", columns), "y", Shares(0)).encoder
    assert read_encoder(json.loads(json.dumps(encoder.to_json()))) == encoder


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        {"name": 3, "kind": "number"},
        {"name": "x", "kind": "number", "mean": "0", "scale": 1, "missing": False},
        {"name": "x", "kind": "number", "mean": 0, "scale": -1, "missing": False},
        {"name": "x", "kind": "number", "mean": 0, "scale": 1, "missing": 0},
        {"name": "x", "kind": "category", "values": []},
        {"name": "x", "kind": "category", "values": ["a", "a"]},
        {"name": "x", "kind": "category", "values": [1]},
        {"name": "x", "kind": "code", "values": ["a"]},
        {"name": "x", "kind": "category", "values": ["a"], "more": 1},
    ],
)
def test_an_encoder_that_nobody_wrote_is_refused(entry):
    with pytest.raises(ValueError, match="entry 1"):
        read_encoder([entry])


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_the_parts_have_nothing_to_do_with_data_made_up_from_the_same_seed(seed):
    """Labels drawn as ``default_rng(0).random(n) < 0.3`` must occur in every part."""
    labels = np.random.default_rng(seed).random(20_000) < 0.3
    parts = Shares(seed).dealer()(20_000)
    for part in range(3):
        assert abs(labels[parts == part].mean() - 0.3) < 0.03


def test_rows_are_dealt_out_from_the_first():
    parts = np.array([2, 0, 1, 1, 0])
    labelled = np.ones(5, bool)
    deal = DealtRows(parts, labelled).dealer()
    assert [deal(2).tolist(), deal(3).tolist()] == [[2, 0], [1, 1, 0]]
    assert DealtRows(parts, labelled).dealer(3)(2).tolist() == [1, 0]
