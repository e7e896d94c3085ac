import csv

import numpy as np
import pytest

from setpoint.tables import TableError, open_table, read_scores
from setpoint.tables.table import need_column


def table(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_table(path)


def cells(source):
    """Names and all rows, as texts."""
    columns = {name: [] for name in source.names}
    for chunk in source.chunks():
        for name in source.names:
            columns[name] += list(chunk.column(name))
    return columns


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,x\n2,y\n",
        "a,b\n1,x\n2,y",
        "a,b\r\n1,x\r\n2,y\r\n",
        "\ufeffa,b\n1,x\n2,y\n",
        "a;b\n1;x\n2;y\n",
        "a\tb\n1\tx\n2\ty\n",
        '"a","b"\n"1","x"\n"2","y"\n',
        "a,b\n\n1,x\n\n2,y\n\n",
        "a|b\n1|x\n2|y\n",
        "sep=;\r\na;b\r\n1;x\r\n2;y\r\n",
        '"sep=^"\na^b\n1^x\n2^y\n',
        "a, b\n1,x\n2,y\n",
        "\ufeffa\tb\n1\tx\n2\ty\n".encode("utf-16-le"),
        "\ufeffa,b\n1,x\n2,y\n".encode("utf-16-be"),
        "a,b\n1,x\n2,y\n".encode("utf-32"),
    ],
    ids=[
        *("plain", "no last line end", "crlf", "bom", "semicolons", "tabs", "quotes"),
        *("blank lines", "pipes", "Excel's sep", "another sep", "space in the header"),
        *("utf-16 of Excel", "utf-16 of others", "utf-32"),
    ],
)
def test_one_table_in_many_spellings(tmp_path, content):
    assert cells(table(tmp_path, content)) == {"a": ["1", "2"], "b": ["x", "y"]}


def test_quoted_values_keep_line_ends_commas_and_quotes(tmp_path):
    source = table(tmp_path, 'a,b\n"one\nrow, ""really""",2\nx,y\n')
    assert cells(source) == {"a": ['one\nrow, "really"', "x"], "b": ["2", "y"]}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("s;y;amount, EUR\n0,5;1;2,5\n", ["s", "y", "amount, EUR"]),
        ("s|y|amount, EUR\n0.5|1|2\n", ["s", "y", "amount, EUR"]),
        ('"s, raw";y\n0,5;1\n', ["s, raw", "y"]),
        ("s, raw;y\n0,5;1\n", ["s, raw", "y"]),
        ("s\ty\ta|b\n1\t2\t3\n", ["s", "y", "a|b"]),
        ("s,y,a;b;c;d\n1,2,3\n", ["s", "y", "a;b;c;d"]),
        ("s\n0.5\n", ["s"]),
        (",s,y,\n0,0.5,1,\n", ["Unnamed: 0", "s", "y", "Unnamed: 3"]),
    ],
)
def test_the_mark_between_columns_fits_header_and_rows(tmp_path, content, names):
    source = table(tmp_path, content)
    assert list(source.names) == names
    assert len(cells(source)[names[0]]) == 1


def test_what_passes_through_keeps_its_marks(tmp_path):
    content = "sep=|\n|s| y\n0|0.5| 1\n".encode("utf-16")
    source = table(tmp_path, content)
    with (tmp_path / "out.csv").open("wb") as file:
        new = {"decision": np.array(["no"])}
        source.write(file, tmp_path / "out.csv", [(c, new) for c in source.chunks()], new)
    assert (tmp_path / "out.csv").read_bytes().decode("utf-16") == "|s| y|decision\n0|0.5| 1|no\n"


@pytest.mark.parametrize(
    ("content", "column", "hint"),
    [
        ("0.5,1\n0.2,0\n", "score", "They look like values: the first row must name the columns."),
        ("score^label\n1^2\n", "label", "separated by commas, semicolons, tabs or pipes."),
        ("Score,Label\n1,2\n", "score", "Did you mean 'Score'?"),
        ("scoer,label\n1,2\n", "score", "Did you mean 'scoer'?"),
    ],
)
def test_a_column_that_is_not_there_says_why(tmp_path, content, column, hint):
    with pytest.raises(TableError) as error:
        need_column(table(tmp_path, content), column, "--score")
    assert str(error.value).endswith(hint)


def test_missing_values_are_none(tmp_path):
    source = table(tmp_path, "a,b\n,1\nNA,1\n ?,1\nNaN,1\nnull,1\n0,1\n")
    assert cells(source)["a"] == [None, None, None, None, None, "0"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv: is empty; the first row must name the columns."),
        ("\n\n", "t.csv: is empty"),
        ("a,b\n1,2\n1\n", "t.csv, row 3: has 1 value where the header names 2"),
        ("a,b\n1,2,3\n", "t.csv, row 2: has 3 values where the header names 2"),
        ('a,b\n"x\ny",1\n1\n', "t.csv, row 3: has 1 value"),  # rows as a spreadsheet counts them
        ("a,a\n1,2\n", "t.csv, column 'a': there are 2 columns of this name; rename all but one."),
        ("sep=;\na;b\n1;2\n1\n", "t.csv, row 4: has 1 value where the header names 2"),
        ('a,b\n"1,2\n', "t.csv, row 2: is not csv"),
        (b"a,b\n\x81\x8d,2\n", "t.csv: is neither utf-8 nor Windows-1252 text"),
        (b"\x03\x04\x9d\x00\x00", "t.csv: is not text"),
        (b"PK\x03\x04\x9d\x00\x00", "t.csv: is a workbook or an archive; save it as"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "t.csv: begins like utf-16 text and is broken"),
    ],
)
def test_a_broken_file_is_told_in_one_line(tmp_path, content, message):
    with pytest.raises(TableError) as error:
        cells(table(tmp_path, content))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(TableError, match=r"gone.csv: no such file"):
        open_table(tmp_path / "gone.csv")
    with pytest.raises(TableError, match="is a folder without parquet files"):
        open_table(tmp_path)


def test_a_long_or_strange_name_stays_on_one_line(tmp_path):
    name = "x\u2028" * 500
    with pytest.raises(TableError) as error:
        table(tmp_path, f'"{name}","{name}"\n1,2\n')
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 300


def test_scores_are_read_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("setpoint.tables.table.CHUNK_ROWS", 7)
    rows = "".join(f"{i / 8},{i % 2},g{i % 3}\n" for i in range(100))
    data = read_scores(table(tmp_path, "s,y,g\n" + rows), "s", "y", "g")
    assert data.scores.tolist() == [i / 8 for i in range(100)]
    assert data.labels.tolist() == [i % 2 for i in range(100)]
    assert data.groups.tolist() == [f"g{i % 3}" for i in range(100)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0.5,1\nnan,0\n", "row 3, column 's': the value is missing (empty, NaN or NA)"),
        ("0.5,1\n,0\nNA,1\n,1\n", "finite numbers. Mend or remove this row and 2 others."),
        ("0.5,1\ninf,0\n", "row 3, column 's': the value is infinite"),
        ("0.5,1\n-Infinity,0\n", "row 3, column 's': the value is infinite"),
        ("0.5,1\n,0\n", "row 3, column 's': the value is missing"),
        ("0.5,1\nhigh,0\n", "row 3, column 's': 'high' is not a number"),
        ("0.5,1\n1_0,0\n", "row 3, column 's': '1_0' is not a number"),
        ("0.5,1\n0.4,1\n", "column 'y': a label column has two different values; this one has 1"),
        ("0.5,1\n0.4,1\n", "1: '1'. Name another column, or add rows of the other class."),
        ("0.5,1\n0.4,0\n0.3,2\n", "this one has 3: '0', '1', '2'"),
        ("0.5,cat\n0.4,dog\n", "say which is the positive one: --positive VALUE"),
        ("", "has a header and no rows"),
    ],
)
def test_scores_that_cannot_be_used_are_named(tmp_path, rows, message):
    with pytest.raises(TableError) as error:
        read_scores(table(tmp_path, "s,y\n" + rows), "s", "y")
    assert message in str(error.value)


def test_a_column_that_is_not_there_names_those_that_are(tmp_path):
    source = table(tmp_path, "score,y\n1,0\n")
    with pytest.raises(
        TableError, match=r"no column 's' \(--score\); the columns are 'score', 'y'"
    ):
        read_scores(source, "s", "y")


@pytest.mark.parametrize(
    ("labels", "positive", "expected"),
    [
        (["0", "1"], None, [0, 1]),
        (["0.0", " 1"], None, [0, 1]),
        (["True", "False"], None, [1, 0]),
        (["no", "yes"], None, [0, 1]),
        (["-1", "1"], None, [0, 1]),
        (["cat", "dog"], "cat", [1, 0]),
        (["1", "2"], "2.0", [0, 1]),
    ],
)
def test_labels(tmp_path, labels, positive, expected):
    source = table(tmp_path, "s,y\n" + "".join(f"0.5,{label}\n" for label in labels))
    assert read_scores(source, "s", "y", positive=positive).labels.tolist() == expected


def test_a_positive_class_that_does_not_occur(tmp_path):
    source = table(tmp_path, "s,y\n1,0\n2,1\n")
    with pytest.raises(TableError, match=r"--positive 'yes' is no label; the labels are '0', '1'"):
        read_scores(source, "s", "y", positive="yes")


@pytest.mark.parametrize("chunk", [3, 100])
def test_a_range_of_rows(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr("setpoint.tables.table.CHUNK_ROWS", chunk)
    source = table(tmp_path, "x\n" + "".join(f"{i}\n" for i in range(10)))
    found = list(source.between(2, 8).chunks())
    assert [x for c in found for x in c.column("x")] == [str(i) for i in range(2, 8)]
    assert [row for c in found for row in c.rows] == list(range(4, 10))


def test_long_cells_are_read_and_endless_ones_refused(tmp_path, monkeypatch):
    long = "x" * 200_000  # more than csv's own limit
    assert cells(table(tmp_path, f"a,b\n1,{long}\n2,c\n"))["b"] == [long, "c"]
    monkeypatch.setattr("setpoint.tables.csv_file.MOST_CHARACTERS", 250_000)
    csv.field_size_limit(250_000)  # the next reader of ours raises it again
    for text in (f"a,b\n1,{long}{long}\n", long + long):
        with pytest.raises(TableError, match="a line of more than 250,000 characters"):
            cells(table(tmp_path, text))
    lines = "x\n" * 200_000
    with pytest.raises(TableError, match=r"row 2: is not csv .*: is a quote not closed\?"):
        cells(table(tmp_path, f'a,b\n1,"{lines}'))


def test_wide_rows_are_read_in_fewer(tmp_path, monkeypatch):
    """A small compressed file may hold long texts: chunks are bounded in characters, too."""
    monkeypatch.setattr("setpoint.tables.csv_file.CHUNK_CHARACTERS", 10_000)
    text = "a,b\n" + "".join(f"{i},{'x' * 1000}\n" for i in range(95))
    source = table(tmp_path, text)
    assert [len(chunk) for chunk in source.chunks()] == [10] * 9 + [5]
    assert [row for chunk in source.chunks() for row in chunk.rows] == list(range(2, 97))
