"""Whatever bytes a file holds, reading it gives a table or one line, and what we write we read."""

import csv
import io

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.tables import TableError, open_table, read_scores
from setpoint.tables.csv_file import write_csv
from setpoint.tables.values import MISSING

FUZZ = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
PIECES = [
    "a",
    "b",
    ",",
    ";",
    "\t",
    '"',
    '""',
    "\n",
    "\r",
    "\r\n",
    "\0",
    "1",
    "-1e9",
    "nan",
    "é",
    "=1+1",
]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def read(path):
    source = open_table(path)
    return source.names, list(source.chunks())


def check_one_line(error):
    assert len(str(error).splitlines()) == 1


@FUZZ
@given(content=st.one_of(st.binary(max_size=60), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_any_bytes_give_a_table_or_one_line(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        names, chunks = read(path)
    except TableError as error:
        check_one_line(error)
        return
    assert len(set(names)) == len(names)
    for chunk in chunks:
        assert {len(chunk.column(name)) for name in names} == {len(chunk)}


@FUZZ
@given(rows=st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=5))
def test_what_the_standard_library_writes_is_read_back(tmp_path, rows):
    written = io.StringIO(newline="")
    csv.writer(written).writerows([["a", "b", "c"], *rows])
    path = tmp_path / "t.csv"
    path.write_bytes(written.getvalue().encode())
    names, chunks = read(path)
    found = [list(row) for c in chunks for row in zip(*map(c.column, names), strict=True)]
    assert found == [[None if t.strip().lower() in MISSING else t for t in row] for row in rows]


@FUZZ
@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_any_scores_and_labels_give_arrays_or_one_line(tmp_path, rows):
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        write_csv(file, path, ["s", "y"], rows)
    try:
        data = read_scores(open_table(path), "s", "y")
    except TableError as error:
        check_one_line(error)
        return
    assert set(data.labels.tolist()) == {0, 1}
