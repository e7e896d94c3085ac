"""Rows pass through unchanged: 1,000 generated files are read and written with a new column."""

import csv
import datetime
import decimal
import gzip
import io
from contextlib import suppress

import numpy as np
import pytest

from setpoint.tables import TableError, open_table
from setpoint.tables.feather_sizes import batch_sizes
from setpoint.tables.scores import read_scores

TEXTS = ["", "NA", "None", "null", "?", "n/a", "nan", " x ", "=1+1", "a,b", 'q"q', "l\nm", "c\rr"]
TEXTS += ["\r\n", "é", "日本", "'", "-1", "1_0", "007", "1800000000000000001", "1e400", "\t", ";"]


def rewritten(path, out):
    """Write the rows of a file with a column of their places and one of texts."""
    source = open_table(path)
    rows, count = [], 0
    for chunk in source.chunks():
        places = np.arange(count, count + len(chunk), dtype=np.float32)
        rows.append((chunk, {"place": places, "text": places.astype(str)}))
        count += len(chunk)
    empty = {"place": np.empty(0, np.float32), "text": np.empty(0, str)}
    with out.open("wb") as file:
        assert source.write(file, out, rows, empty) == count
    return source


def zstandard(content):
    """The bytes of a compressed file."""
    pa = pytest.importorskip("pyarrow")
    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as file:
        return file.read()


def csv_file(rng, path):
    """A csv file in a random dialect, and its cells."""
    width, height = int(rng.integers(1, 5)), int(rng.integers(0, 8))
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "cp1252", "utf-16"]))
    known = [t for t in TEXTS if encoding != "cp1252" or t != "日本"]
    delimiter = str(rng.choice([",", ";", "\t"])) if width > 1 else ","
    lines = [[f"c{i}" for i in range(width)]]
    lines += [[str(rng.choice(known)) for _ in range(width)] for _ in range(height)]
    text = io.StringIO(newline="")
    ends = str(rng.choice(["\r\n", "\n"]))
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator=ends).writerows(
        lines
    )
    content = text.getvalue().encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return lines, delimiter, encoding


UNPACK = {".csv": bytes, ".csv.gz": gzip.decompress, ".csv.zst": zstandard}


@pytest.mark.parametrize("suffix", UNPACK)
def test_cells_of_csv_files(tmp_path, suffix):
    rng = np.random.default_rng(0)
    for number in range(300):
        path, out = tmp_path / f"{number}{suffix}", tmp_path / f"out{suffix}"
        lines, delimiter, encoding = csv_file(rng, path)
        source = rewritten(path, out)
        content = UNPACK[suffix](out.read_bytes())
        assert encoding != "utf-16" or content[:2] == b"\xff\xfe"
        if source.encoding != encoding:  # what is plain ASCII cannot be told apart
            assert {source.encoding, encoding} == {"utf-8", "cp1252"}
        text = io.StringIO(content.decode(source.encoding), newline="")
        found = list(csv.reader(text, delimiter=delimiter))
        assert [line[:-2] for line in found] == lines
        assert [line[-1] for line in found[1:]] == [f"{i}.0" for i in range(len(lines) - 1)]


def arrow_column(rng, rows):
    import pyarrow as pa

    day = datetime.date(2026, 1, 1)
    kinds = [
        (pa.int64(), lambda: int(rng.integers(-(2**62), 2**62))),
        (pa.uint64(), lambda: 2**63 + int(rng.integers(0, 2**60))),
        (pa.int8(), lambda: int(rng.integers(-5, 5))),
        (pa.float32(), lambda: float(np.float32(rng.normal()))),
        (pa.float64(), lambda: float(rng.choice([np.inf, 1e-320, rng.normal()]))),
        (pa.bool_(), lambda: bool(rng.integers(2))),
        (pa.string(), lambda: str(rng.choice(TEXTS))),
        (pa.large_string(), lambda: str(rng.choice(TEXTS))),
        (pa.dictionary(pa.int32(), pa.string()), lambda: str(rng.choice(TEXTS))),
        (pa.decimal128(30, 4), lambda: decimal.Decimal(int(rng.integers(1, 10**18))).scaleb(-4)),
        (pa.timestamp("ns"), lambda: int(rng.integers(0, 2**60))),
        (pa.timestamp("us", "UTC"), lambda: int(rng.integers(0, 2**50))),
        (pa.date32(), lambda: day),
        (pa.time64("us"), lambda: int(rng.integers(0, 10**9))),
        (pa.binary(), lambda: rng.bytes(3)),
        (pa.list_(pa.int64()), lambda: [1, int(rng.integers(2**60))]),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), lambda: {"a": 2**60, "b": "x"}),
    ]
    kind, draw = kinds[rng.integers(len(kinds))]
    return pa.array([None if rng.random() < 0.2 else draw() for _ in range(rows)], kind)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_columns_of_arrow_files(tmp_path, suffix, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    monkeypatch.setattr("setpoint.tables.table.CHUNK_ROWS", 3)
    read = parquet.read_table if suffix == ".parquet" else feather.read_table
    write = parquet.write_table if suffix == ".parquet" else feather.write_feather
    rng = np.random.default_rng(1)
    for _ in range(200):
        rows, width = int(rng.integers(0, 8)), int(rng.integers(1, 6))
        names = [f"c{i}" for i in range(width)]
        table = pa.table([arrow_column(rng, rows) for _ in names], names=names)
        table = table.replace_schema_metadata({"made": "here", "odd": "\u2028"})
        path, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
        write(table, path)
        before = read(path)
        rewritten(path, out)
        after = read(out)
        assert after.select(names).schema.equals(before.schema, check_metadata=True)
        assert after.select(names).equals(before) or str(after) == str(before)
        assert after.column("place").to_pylist() == list(map(float, range(rows)))
        assert after.schema.metadata[b"made"] == b"here"


def test_the_name_of_a_file_tells_the_truth_about_its_format(tmp_path):
    """Feather to .parquet was csv text, as a parquet file without an ending was."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table({"id": [2**60, None], "t": ["NA", ""]})
    feather.write_feather(table, tmp_path / "in.feather")
    parquet.write_table(table, tmp_path / "in.parquet")
    for name in ("in.feather", "in.parquet"):
        rewritten(tmp_path / name, tmp_path / "out.pq")
        rewritten(tmp_path / name, tmp_path / "out.arrow")
        assert parquet.read_table(tmp_path / "out.pq").select(["id", "t"]).equals(table)
        assert feather.read_table(tmp_path / "out.arrow").select(["id", "t"]).equals(table)
        rewritten(tmp_path / name, tmp_path / "out")
        assert (tmp_path / "out").read_bytes()[:4] == {"f": b"ARRO", "p": b"PAR1"}[name[3]]
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"out\.pq would be csv by another name"):
        rewritten(tmp_path / "in.csv", tmp_path / "out.pq")


def test_blank_texts_of_arrow_are_missing_as_in_csv_and_pass_through(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "s": ["0.5", " ", "1.5", "2"],
        "y": ["no", "", "yes", None],
        "g": ["", "a", "b", "b"],
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    (chunk,) = source.chunks()
    assert chunk.rows_without("y") == [2, 4]
    assert chunk.absent("s").tolist() == [False, True, False, False]
    assert chunk.column("s").tolist() == ["0.5", None, "1.5", "2"]
    assert chunk.coded("y")[0] == ["no", "yes", None]
    with pytest.raises(TableError, match="row 1, column 'g': the value is missing"):
        chunk.texts("g")
    rewritten(tmp_path / "t.parquet", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["s"] for row in csv.DictReader(file)] == columns["s"]


def test_a_column_whose_name_has_a_dot_counts_for_the_memory(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from setpoint.tables.arrow_file import _rows_within

    parquet.write_table(
        pa.table({"a.b": ["x" * 1000 + str(i) for i in range(100)], "a": [0] * 100}),
        tmp_path / "t.parquet",
    )
    metadata = parquet.read_metadata(tmp_path / "t.parquet")
    assert 1000 < 2**28 / _rows_within(metadata, ["a.b"], 2**40) < 2000
    assert 2**28 / _rows_within(metadata, ["a"], 2**40) < 2000
    parquet.write_table(pa.table({"c": [0.5] * 50_000}), tmp_path / "t.parquet")  # takes no bytes
    assert _rows_within(parquet.read_metadata(tmp_path / "t.parquet"), ["c"], 2**40) == 2**25


def test_a_table_of_arrow_as_csv(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "id": pa.array([1800000000000000001, None], pa.int64()),
        "paid": pa.array([decimal.Decimal("12345678901234567.0001"), None]),
        "when": pa.array([1, 2], pa.timestamp("ns")),
        "country": ["NA", None],
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    rewritten(tmp_path / "t.parquet", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["id"], first["paid"], first["country"]) == (
        "1800000000000000001",
        "12345678901234567.0001",
        "NA",
    )
    assert first["when"].startswith("1970-01-01 00:00:00.000000001")
    assert second["id"] == second["paid"] == second["country"] == ""


def test_long_ids_and_decimals_are_told_apart(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    ids = [1800000000000000000 + i for i in range(50)]
    money = [decimal.Decimal(10**17 + i).scaleb(-2) for i in range(50)]
    columns = {"id": pa.array(ids), "money": pa.array(money, pa.decimal128(20, 2))}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    (chunk,) = open_table(tmp_path / "t.parquet").chunks()
    assert chunk.texts("id").tolist() == [str(i) for i in ids]
    assert chunk.texts("money").tolist() == [str(m) for m in money]


def test_memory_of_a_batch_is_bounded(tmp_path, monkeypatch):
    """Long texts that compress well: a batch has at most BATCH_BYTES, beside a page of the file."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("setpoint.tables.arrow_file.BATCH_BYTES", 2**22)
    texts = [str(i % 7) * 50_000 for i in range(2000)]  # 100 MB
    for plain in (True, False):
        path = tmp_path / f"{plain}.parquet"
        how = {"use_dictionary": not plain, "compression": "zstd", "write_batch_size": 10}
        parquet.write_table(pa.table({"t": texts, "s": range(2000)}), path, **how)
        assert path.stat().st_size < 2**19
        pool = pa.default_memory_pool()
        start = pool.bytes_allocated()
        most = count = 0
        for chunk in open_table(path).chunks():
            most = max(most, pool.bytes_allocated() - start)
            column = chunk.column("t")
            assert len({id(text) for text in column}) <= 7
            count += len(chunk)
        assert count == 2000
        assert most < 3 * 2**22, (plain, most)


def big_batch(path, compression="zstd", rows=40_000):
    """A feather file with one batch of 24 bytes a row, which is the first of two dictionaries."""
    import pyarrow as pa

    columns = {"x": np.arange(float(rows)), "s": np.arange(rows) % 3, "t": pa.array(["a"] * rows)}
    table = pa.table(columns).replace_schema_metadata({"made": "here"})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=options) as w,
    ):
        w.write_batch(table.combine_chunks().to_batches()[0])
    return table


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_memory_of_a_large_batch_of_feather_is_bounded(tmp_path, monkeypatch, compression):
    pa = pytest.importorskip("pyarrow")
    path, out = tmp_path / "in.feather", tmp_path / "out.feather"
    table = big_batch(path, compression)
    monkeypatch.setattr("setpoint.tables.arrow_file.BATCH_BYTES", 2**19)  # of 840,000
    monkeypatch.setattr("setpoint.tables.table.CHUNK_ROWS", 1000)
    pool = pa.default_memory_pool()
    start, most, count = pool.bytes_allocated(), 0, 0
    for chunk in open_table(path).chunks():
        most = max(most, pool.bytes_allocated() - start)
        assert len(chunk) <= 1000
        count += len(chunk)
    assert count == 40_000
    assert most < 2**19 + 8 * 40_000, most
    rewritten(path, out)
    after = pa.ipc.open_file(out).read_all()
    assert after.select(["x", "s", "t"]).equals(table, check_metadata=False)
    assert after.schema.metadata[b"made"] == b"here"
    with out.open("rb") as file:
        assert {size.codec for size in batch_sizes(file)[1]} == {compression}


def test_a_column_of_one_batch_beyond_the_bound_is_refused(tmp_path, monkeypatch):
    """Before it is decompressed; so are a dictionary, and rows that take no bytes at all."""
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "in.feather"
    big_batch(path)
    tables = tmp_path / "words.feather", tmp_path / "nothing.feather"
    words = pa.table({"s": [1.0], "d": pa.array(["x" * 2**18]).dictionary_encode()})
    for place, table in zip(tables, (words, pa.table({"n": pa.nulls(2**20)})), strict=True):
        with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_batch(table.to_batches()[0])
    for place in (path, *tables):
        monkeypatch.setattr("setpoint.tables.arrow_file.BATCH_BYTES", 2**17)
        with pytest.raises(TableError, match=r"a batch of .* rows that takes .* GB; write it in"):
            open_table(place)
        monkeypatch.setattr("setpoint.tables.arrow_file.BATCH_BYTES", 2**25)
        assert sum(map(len, open_table(place).chunks())) > 0


def test_a_batch_without_rows_has_none(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"s": pa.array([], pa.float64())})
    place = str(tmp_path / "t.feather")
    with pa.OSFile(place, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([table["s"].combine_chunks()], ["s"]))
    with (tmp_path / "t.feather").open("rb") as file:
        assert [size.rows for size in batch_sizes(file)[1]] == [0]
    assert open_table(tmp_path / "t.feather").count == 0


def test_damaged_feather_is_refused_or_read(tmp_path):
    path = tmp_path / "in.feather"
    big_batch(path, rows=50)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=rng.integers(1, 5)):
            content[place] = rng.integers(256)
        path.write_bytes(content[: rng.integers(len(content)) if rng.random() < 0.3 else None])
        with suppress(TableError):
            assert sum(map(len, open_table(path).chunks())) >= 0


def test_long_names_of_groups_are_in_memory_once(tmp_path):
    """As an array of texts, 20,000 rows of 50,000 characters would take 4 GB."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = pa.array(["x" * 50_000, "y" * 50_000])
    whose = pa.DictionaryArray.from_arrays(pa.array(np.arange(20_000, dtype=np.int32) % 2), names)
    labels = np.arange(20_000) % 3 == 0
    table = {"s": np.linspace(0, 1, 20_000), "y": labels.astype(int), "g": whose}
    parquet.write_table(pa.table(table), tmp_path / "t.parquet")
    read = read_scores(open_table(tmp_path / "t.parquet"), "s", "y", "g")
    assert len({id(name) for name in read.groups.tolist()}) <= 40  # twice for each batch
    assert sum(map(len, set(read.groups.tolist()))) == 100_000
