"""`predict` adds columns and changes nothing else: files of odd cells and types through a run."""

import csv
import datetime
import decimal
import io

import numpy as np
import pytest
from cli.shell import run, write_data
from tables.test_round_trip import TEXTS, arrow_column

FILES = 60


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unchanged")
    write_data(folder / "data.csv", rows=800)
    goal = ("--label", "churn", "--goal", "maximize recall subject to fpr <= 0.2")
    short = ("--epochs", 3, "--model", "linear", "--no-baseline", "--drop", "sex", "fixed")
    assert run("train", folder / "data.csv", *goal, *short, "--out", folder / "run") == 0
    return folder / "run"


def features(rng, rows):
    """The columns that the run learned from, as texts."""
    age = [f"{value:.3f}" for value in rng.normal(50, 10, rows)]
    return {"age": age, "city": rng.choice(["Rome", "Oslo"], rows).tolist()}


def test_fields_of_csv_files(trained, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(FILES):
        rows = int(rng.integers(0, 8))
        cells = features(rng, rows)
        for i in range(int(rng.integers(0, 4))):
            cells[f"odd {i}"] = rng.choice(TEXTS, rows).tolist()
        names = rng.permutation(list(cells)).tolist()
        lines = [names, *(list(row) for row in zip(*(cells[n] for n in names), strict=True))]
        text = io.StringIO(newline="")
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows(lines)
        (tmp_path / "new.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
        words = ("predict", trained, tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--force")
        assert run(*words) == 0
        with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
            found = list(csv.reader(file))
        assert [line[:-2] for line in found] == lines
        assert found[0][-2:] == ["score", "decision"]
        assert {line[-1] for line in found[1:]} <= {"yes", "no"}


def test_columns_of_parquet_files(trained, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rng = np.random.default_rng(1)
    for _ in range(FILES):
        rows = int(rng.integers(0, 8))
        known = features(rng, rows)
        age = pa.array([decimal.Decimal(a) for a in known["age"]], pa.decimal128(20, 6))
        columns = {"age": age, "city": pa.array(known["city"], pa.string())}
        for i in range(int(rng.integers(1, 5))):
            columns[f"odd {i}"] = arrow_column(rng, rows)
        table = pa.table(columns).replace_schema_metadata({"made": "here"})
        parquet.write_table(table, tmp_path / "new.parquet")
        out = tmp_path / "out.parquet"
        assert run("predict", trained, tmp_path / "new.parquet", "--out", out, "--force") == 0
        before, after = parquet.read_table(tmp_path / "new.parquet"), parquet.read_table(out)
        same = after.select(list(columns))
        assert same.schema.equals(before.schema, check_metadata=True)
        assert same.equals(before) or str(same) == str(before)  # NaN is not equal to NaN
        assert after.schema.names[-2:] == ["score", "decision"]


def test_the_columns_that_broke(trained, tmp_path):
    """Long ids became 1.8e+18, timestamps empty, booleans 0 and 1, Namibia's code empty."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    ids = [1800000000000000000 + i for i in range(3000)]
    columns = {
        "age": [40.0] * 3000,
        "city": ["Rome"] * 3000,
        "id": pa.array(ids, pa.int64()),
        "when": pa.array([datetime.datetime(2026, 1, 1)] * 3000, pa.timestamp("us")),
        "paid": pa.array([True, None] * 1500),
        "country": ["NA", "None"] * 1500,
    }
    parquet.write_table(pa.table(columns), tmp_path / "new.parquet")
    assert run("predict", trained, tmp_path / "new.parquet", "--out", tmp_path / "o.parquet") == 0
    after = parquet.read_table(tmp_path / "o.parquet")
    assert after.column("id").to_pylist() == ids
    for name in columns:
        assert after.column(name).equals(parquet.read_table(tmp_path / "new.parquet").column(name))
