import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from setpoint.tables import TableError, open_table, read_scores  # noqa: E402
from setpoint.tables.training_file import Shares, survey  # noqa: E402


def write(path, **columns):
    pq.write_table(pa.table(columns), path)
    return open_table(path)


def test_numbers_texts_and_truth_values(tmp_path):
    source = write(
        tmp_path / "t.parquet",
        i=pa.array([1, None, 3]),
        f=pa.array([1.5, float("nan"), 2.0], pa.float32()),
        b=pa.array([True, False, None]),
        t=pa.array(["x", None, "=1"]),
        d=pa.array(["p", "q", "p"]).dictionary_encode(),
    )
    (chunk,) = source.chunks()
    np.testing.assert_array_equal(chunk.column("i"), [1, np.nan, 3])
    np.testing.assert_array_equal(chunk.column("f"), [1.5, np.nan, 2])
    np.testing.assert_array_equal(chunk.column("b"), [1, 0, np.nan])
    assert chunk.column("t").tolist() == ["x", None, "=1"]
    assert chunk.column("d").tolist() == ["p", "q", "p"]
    assert list(chunk.rows) == [1, 2, 3]


def test_scores_and_the_row_of_a_bad_one(tmp_path):
    source = write(tmp_path / "t.parquet", s=[0.5, 0.25], y=[0, 1])
    assert read_scores(source, "s", "y").labels.tolist() == [0, 1]
    source = write(tmp_path / "u.parquet", s=[0.5, float("inf")], y=[0, 1])
    with pytest.raises(TableError, match="row 2, column 's': the value is infinite"):
        read_scores(source, "s", "y")


def test_constant_dates_and_lists_are_left_out_and_reported(tmp_path):
    import datetime

    day = datetime.date(2026, 1, 1)
    source = write(tmp_path / "t.parquet", y=[0, 1] * 9, x=range(18), d=[day] * 18, l=[[1]] * 18)
    seen = survey(source, "y", Shares(0))
    assert seen.encoder.names == ("x",)
    assert "column 'd' left out: it is constant." in seen.notes
    assert "column 'l' left out: neither numbers, texts nor dates." in seen.notes
    with pytest.raises(TableError, match="column 'l': holds neither numbers, texts nor dates"):
        next(source.chunks(["l"])).column("l")


def test_a_damaged_file_is_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, y=list(range(5000)))
    content = path.read_bytes()
    for broken in (b"", b"a,b\n1,2\n", content[: len(content) // 2], content[:-4] + b"XXXX"):
        path.write_bytes(broken)
        with pytest.raises(TableError) as error:
            list(open_table(path).chunks())
        assert "cannot be read as parquet" in str(error.value)
        assert "\n" not in str(error.value)


def test_duplicate_names(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TableError, match="there are 2 columns of this name"):
        open_table(tmp_path / "t.parquet")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    write(tmp_path / "t.parquet", y=[1])
    monkeypatch.setattr("setpoint.tables.streams.find_spec", lambda name: None)
    with pytest.raises(TableError, match=r'pip install "setpoint\[data\]"'):
        open_table(tmp_path / "t.parquet")


def folder_of(tmp_path, *sizes):
    (tmp_path / "t").mkdir()
    start = 0
    for number, size in enumerate(sizes):
        write(tmp_path / "t" / f"{number}.parquet", x=list(range(start, start + size)))
        start += size
    return open_table(tmp_path / "t")


@pytest.mark.parametrize("chunk", [4, 100])
@pytest.mark.parametrize(("start", "stop"), [(0, 30), (0, 10), (3, 12), (10, 21), (29, 30), (5, 5)])
def test_a_range_of_rows_of_several_files(tmp_path, monkeypatch, chunk, start, stop):
    monkeypatch.setattr("setpoint.tables.table.CHUNK_ROWS", chunk)
    found = list(folder_of(tmp_path, 10, 1, 19).between(start, stop).chunks())
    assert [v for c in found for v in c.column("x").tolist()] == list(range(start, stop))
    assert [row for c in found for row in c.rows] == list(range(start + 1, stop + 1))


def test_files_outside_of_a_range_stay_closed(tmp_path):
    source = folder_of(tmp_path, 10, 10)
    (tmp_path / "t" / "1.parquet").write_bytes(b"gone")
    assert sum(map(len, source.between(2, 10).chunks())) == 8
    with pytest.raises(TableError, match=r"1.parquet: cannot be read as parquet"):
        list(source.between(2, 11).chunks())


def test_files_of_a_folder_have_the_same_columns(tmp_path):
    folder_of(tmp_path, 3)
    write(tmp_path / "t" / "1.parquet", z=[1])
    with pytest.raises(
        TableError, match=r"1.parquet: column 'x' is not there, and int64 in '0.parquet'"
    ):
        open_table(tmp_path / "t")
