"""Numbers as people write them, compressed files, other encodings, pipes."""

import gzip
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from cli.shell import run

from setpoint.tables import TableError, open_table, read_scores, streams, table
from setpoint.tables.decimal_marks import column_format
from setpoint.tables.training_file import Shares, read_all, survey
from setpoint.tables.values import days_of, find_format, text_column


@pytest.mark.parametrize(
    ("texts", "name", "numbers"),
    [
        (["1", "2.5", "-1e3", "inf"], "a number", [1, 2.5, -1000, np.inf]),
        (["1,234.50", "12"], "a number with thousands separators", [1234.5, 12]),
        (["1 234", "1\u202f234\u202f567"], "a number with thousands separators", [1234, 1234567]),
        (["0,0008", "1,5", "-3"], "a number with decimal comma", [0.0008, 1.5, -3]),
        (["1.234,50", "1.234.567"], "a number with decimal comma", [1234.5, 1234567]),
        (["19.0%", "0.5 %"], "a percentage", [0.19, 0.005]),
        (["19,5 %"], "a percentage with decimal comma", [0.195]),
        (["8,942 %", "0,512 %"], "a percentage with decimal comma", [0.08942, 0.00512]),
        (["1,234", "-0,512"], "a number with decimal comma", [1.234, -0.512]),
        (["$1,234.50", "-$3", "€ 5"], "an amount of money", [1234.5, -3, 5]),
        (["1.234,50 €", "EUR 12"], "an amount of money with decimal comma", [1234.5, 12]),
        (["1970-01-02", "1970-01-01 12:00"], "days since 1970-01-01", [1, 0.5]),
    ],
)
def test_formats(texts, name, numbers):
    found = find_format(text_column(texts))
    assert found is not None
    assert found.name == name
    np.testing.assert_allclose([found.number(t) for t in texts], numbers, rtol=1e-15)


@pytest.mark.parametrize(
    "texts",
    [["a", "b"], ["1", "x"], ["1_000"], ["1,23,4"], ["5%", "0.3"], ["$3", "3"], ["12:30"], ["0x1"]],
)
def test_other_texts_are_no_numbers(texts):
    assert find_format(text_column(texts)) is None


def write(tmp_path, text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


POINT, COMMA = "add --decimal point.", "add --decimal comma."


@pytest.mark.parametrize(
    ("text", "known", "told"),
    [
        # other values of the column tell
        ("a;b\n1.270;x\n1.234.567;y\n", 1270, "'1.234.567' read as a number with decimal comma."),
        ("a;b\n1.270;x\n12,5;y\n", 1270, "'12,5' read as a number with decimal comma."),
        ("a;b\n1.270;x\n0.5;y\n", 1.27, None),
        ("a;b\n1.270;x\n1.2345;y\n", 1.27, None),
        ("a;b\n1.270;x\n1234.567;y\n", 1.27, None),
        ("a;b\n1.270e+03;x\n5;y\n", 1270, None),
        # the file tells
        (
            "a;b\n1.270;x\n512;y\n",
            1270,
            f"by the semicolons between values and {{}}; for 1.27 {POINT}",
        ),
        ("a;b\n1,270;x\n2,512;y\n", 1.27, f"by the semicolons between values; for 1270 {POINT}"),
        ("a,b\n1.270,x\n2.512,y\n", 1.27, f"by default; for 1270 {COMMA}"),
        ("a;b\n1.270;0.5\n2.512;0.7\n", 1.27, f"by other columns; for 1270 {COMMA}"),
        ("a\tb\n1.270\t0,5\n512\t0,7\n", 1270, f"by other columns and {{}}; for 1.27 {POINT}"),
        ('a,b\n"1,270",x\n512,y\n', 1270, f"by default and {{}}; for 1.27 {COMMA}"),
        (
            "a;b\n8,942 %;x\n2,500 %;y\n",
            0.08942,
            f"the semicolons between values; for 89.42 {POINT}",
        ),
    ],
)
def test_what_a_mark_means_is_told_by_the_column_then_by_the_file(tmp_path, text, known, told):
    source = open_table(write(tmp_path, text))
    found, notes = column_format(source, "a")
    assert found.number(next(source.chunks(["a"])).column("a")[0]) == pytest.approx(known)
    assert bool(notes) == (told is not None)
    assert not notes or (told or "").format("the whole numbers beside it") in notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1.270;0.5\n512;0.7\n",  # others have a point, and 512 is not 512.000
        "a,b\n1.270,x\n512,y\n",
        "a;b\n1.270;x\n5120;y\n",  # semicolons, and 5120 has no mark
        "a;b;c\n1.270;0.5;0,5\n2.512;0.7;0,7\n",  # others differ
    ],
)
def test_a_mark_that_nothing_tells_is_refused_until_somebody_says_it(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(TableError, match=r"'1.270' is .* and .*: add --decimal point or --decimal"):
        column_format(open_table(path), "a")
    for decimal, value in (("point", 1.27), ("comma", 1270)):
        found, _ = column_format(open_table(path, decimal), "a")
        assert found.number("1.270") == value


def test_the_whole_file_tells_what_a_mark_means(tmp_path, monkeypatch):
    """Read in chunks of two rows: whole numbers, marks that do not tell, one that does."""
    monkeypatch.setattr(table, "CHUNK_ROWS", 2)
    lines = ["y;a", *(f"{i % 2};{i}" for i in range(8)), "0;1.270", "1;9", "0;4.500", "1;7"]
    for last, value in (("0;12,5", 1270), ("0;12.5", 1.27)):
        path = write(tmp_path, "\n".join([*lines, last, "1;3"]))
        assert read_scores(open_table(path), "a").scores[8] == value
        seen = survey(open_table(path), "y", Shares(0))
        (number,) = seen.encoder.columns
        assert (number.written == "a number") == (value == 1.27)
        with read_all(open_table(path), "y", seen.classes, seen.encoder) as (part,):
            shown = part.x[:, 0] * number.scale + number.mean
        assert shown[8] == pytest.approx(value, rel=1e-5)


def test_a_new_file_with_other_marks_than_in_training_is_refused(tmp_path):
    train = "y,a\n" + "".join(f"{i % 2},{i}\n" for i in range(40))
    encoder = survey(open_table(write(tmp_path, train)), "y", Shares(0)).encoder
    new = write(tmp_path, "a;b\n1.270;0,5\n512;0,7\n", "new.csv")
    with pytest.raises(TableError, match=r"'1.270' is 1270 by this file, and 1.27 as in training"):
        list(encoder.chunks(open_table(new)))
    assert list(encoder.chunks(open_table(new, "point")))


def test_the_note_shows_a_value_that_tells(tmp_path):
    for text, shown in (
        ("s;y\n5;1\n12,5;0\n", "12,5"),
        ('s,y\n12,1\n"1,234,567",0\n', "1,234,567"),
        ("s;y\n5 €;1\n1.234,50 €;0\n", "1.234,50 €"),
        ("s;y\n1/2/2026;1\n1/31/2026;0\n", "1/31/2026"),
    ):
        assert repr(shown) in column_format(open_table(write(tmp_path, text)), "s")[1][0]


@pytest.mark.parametrize("text", ["3 Jan 2024", "Jan 3, 2024", "03-JAN-2024", "January 3 2024"])
def test_months_have_names(text):
    found = find_format(text_column([text]))
    assert found.number(text) == days_of("2024-01-03")
    assert find_format(text_column(["3 Jam 2024"])) is None


def test_scores_in_another_format_are_read_and_told(tmp_path):
    path = write(tmp_path, "s;y\n" + "0,25;1\n0,125;0\n")
    data = read_scores(open_table(path), "s", "y")
    assert data.scores.tolist() == [0.25, 0.125]
    assert data.notes == ("column 's': '0,25' read as a number with decimal comma.",)


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    path = write(tmp_path, "s,y\n1,1\n2,\n3,0\n4,NA\n")
    data = read_scores(open_table(path), "s", "y")
    assert data.labelled.scores.tolist() == [1, 3]
    assert data.labelled.labels.tolist() == [1, 0]
    assert data.notes == ("2 rows without a label in 'y' left out, the first is row 3.",)
    with pytest.raises(TableError, match="column 'y': no row has a label"):
        read_scores(open_table(write(tmp_path, "s,y\n1,\n")), "s", "y")


def test_training_reads_messy_columns_and_says_so(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["y;amount;share;day;name"]
    for i in range(300):
        y = "" if i % 50 == 7 else int(rng.random() < 0.5)
        day = f"2026-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}"
        euro = f"{rng.integers(1, 9)}.{rng.integers(100, 999)},50 €"
        lines.append(f"{y};{euro};{rng.integers(1, 99)},5%;{day};Ærø")
    path = write(tmp_path, "\n".join(lines), encoding="cp1252")
    seen = survey(open_table(path), "y", Shares(0))
    assert seen.encoder.names == ("amount", "share", "day")
    told = " ".join(seen.notes)
    assert "6 rows without a label in 'y' left out, the first is row 9." in told
    assert "read as an amount of money with decimal comma" in told
    assert "read as a percentage with decimal comma" in told
    assert "read as days since 1970-01-01" in told
    with read_all(open_table(path), "y", seen.classes, seen.encoder) as (part,):
        assert part.x.shape == (294, 3)
        assert np.isfinite(part.x).all()
        assert np.abs(part.x.std(0) - 1).max() < 0.2


def test_features_of_any_scale_are_standardised(tmp_path):
    x = np.random.default_rng(0).normal(size=400)
    for scale in (4e307, 1e300, 1e-300, 1e-12):
        text = "y,x\n" + "".join(f"{i % 2},{float(v * scale)!r}\n" for i, v in enumerate(x))
        path = write(tmp_path, text)
        seen = survey(open_table(path), "y", Shares(0))
        with read_all(open_table(path), "y", seen.classes, seen.encoder) as (part,):
            assert abs(part.x.std() - 1) < 0.1


def test_a_new_value_beyond_float32_is_named(tmp_path):
    text = "y,x\n" + "".join(f"{i % 2},{i}\n" for i in range(40))
    seen = survey(open_table(write(tmp_path, text)), "y", Shares(0))
    new = open_table(write(tmp_path, "x\n1\n1e300\n"))
    with pytest.raises(TableError, match="row 3, column 'x': '1e300' is too far from the values"):
        list(seen.encoder.chunks(new))


@pytest.mark.parametrize("name", ["t.csv.gz", "t.gz"])
def test_gzip(tmp_path, name):
    path = write(tmp_path, "s,y\n1,1\n2,0\n", name)
    assert read_scores(open_table(path), "s", "y").scores.tolist() == [1, 2]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TableError, match="cannot be uncompressed"):
        open_table(path)


def test_zstd_and_feather(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather

    with pa.CompressedOutputStream(str(tmp_path / "t.csv.zst"), "zstd") as file:
        file.write(b"s,y\n1,1\n2,0\n")
    feather.write_feather(pa.table({"s": [1.0, 2.0], "y": [1, 0]}), tmp_path / "t.feather")
    for name in ("t.csv.zst", "t.feather"):
        data = read_scores(open_table(tmp_path / name), "s", "y")
        assert data.labels.tolist() == [1, 0]
    (tmp_path / "bad.zst").write_bytes((tmp_path / "t.csv.zst").read_bytes()[:12])
    with pytest.raises(TableError, match=r"cannot be uncompressed|is empty"):
        open_table(tmp_path / "bad.zst")


def test_more_than_a_limit_from_a_small_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MOST_BYTES", 10_000)
    path = write(tmp_path, "s,y\n" + "1,1\n" * 10_000, "bomb.csv.gz")
    with pytest.raises(TableError, match=r"bomb.csv.gz: more than .* come out of it"):
        open_table(path)


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_is_read_once_and_used_often(fifo):
    writer = threading.Thread(target=lambda: fifo.write_text("s,y\n1,1\n2,0\n"))
    writer.start()
    source = open_table(fifo)
    writer.join()
    for _ in range(2):
        assert read_scores(source, "s", "y").scores.tolist() == [1, 2]


def test_a_pipe_without_a_writer_ends_with_a_message(fifo, monkeypatch):
    monkeypatch.setattr(streams, "FIRST_PATIENCE", 0.05)
    with pytest.raises(TableError, match=r"nothing came out of it for 0.05 seconds"):
        open_table(fifo)


def test_endless_zeros_end_with_a_message():
    with pytest.raises(TableError, match="starts with zeros"):
        open_table(type(streams.STDIN)("/dev/zero"))


def test_standard_input(tmp_path):
    script = "from setpoint.tables import *; from pathlib import Path; "
    script += "print(read_scores(open_table(Path('-')), 's', 'y').scores.tolist())"
    done = subprocess.run(
        [sys.executable, "-c", script], input=b"s,y\n1,1\n2,0\n", capture_output=True, check=True
    )
    assert done.stdout == b"[1.0, 2.0]\n"


@pytest.mark.parametrize(
    ("written", "order"),
    [
        ("{2:02d}.{1:02d}.{0}", "day.month.year"),
        ("{1}/{2}/{0}", "month/day/year"),
        ("{2:02d}/{1:02d}/{0}", "day/month/year"),
        ("{2}.{1}.{0} 14:30", "day.month.year"),
    ],
)
def test_dates_as_people_write_them(tmp_path, capsys, written, order):
    """Every day of 40: that some are no month tells which of two numbers is the month."""
    random = np.random.default_rng(0)
    days = np.datetime64("2026-01-05") + np.arange(4000) // 100
    labels = random.random(4000) < 0.2
    scores = random.normal(size=4000) + 3 * labels
    lines = ["s,y,posted at"]
    for s, y, day in zip(scores, labels, days, strict=True):
        parts = written.format(*(int(part) for part in str(day).split("-")))
        lines.append(f"{s},{int(y)},{parts}")
    (tmp_path / "s.csv").write_text("\n".join(lines))
    ask = ("certify", tmp_path / "s.csv", "--score", "s", "--label", "y", "--goal", "fpr <= 5 %")
    assert run(*ask, "--time", "posted at") == 0
    out, notes = capsys.readouterr()
    time = " 14:30:00" if "14:30" in written else ""
    assert f"measured from 2026-01-05{time} to 2026-02-13{time}" in " ".join(out.split())
    assert f"read as days since 1970-01-01, written {order}." in notes
    assert run(*ask) == 0
    assert "--time 'posted at'" in capsys.readouterr().err


def test_times_that_are_none_and_json_are_refused(tmp_path, capsys):
    (tmp_path / "s.csv").write_text("s,y,t\n1,0,2026-01-01\n2,1,13:20\n3,1,12:10")
    ask = ("--score", "s", "--label", "y", "--goal", "fpr <= 5 %")
    assert run("certify", tmp_path / "s.csv", *ask, "--time", "t") == 2
    assert "'13:20' in row 1: write ISO dates" in capsys.readouterr().err
    (tmp_path / "s.jsonl").write_text('{"s": 1.5, "y": 0}\n')
    assert run("certify", tmp_path / "s.jsonl", *ask) == 2
    assert "looks like JSON" in capsys.readouterr().err


def test_the_formats_of_several_score_columns_are_told(tmp_path, capsys):
    lines = [f"{i},25;{i};{i % 2};{i % 2}" for i in range(1, 400)]
    path = write(tmp_path, "s1;s2;y1;y2\n" + "\n".join(lines))
    columns = ("--score", "s1", "--score", "s2", "--label", "y1", "--label", "y2")
    run("certify", path, *columns, "--goal", "fpr <= 10 %")
    assert "column 's1': '1,25' read as a number with decimal comma." in capsys.readouterr().err


def test_large_numbers_behind_many_small_ones_may_have_thousands_separators(tmp_path, monkeypatch):
    """Found by the attack "tables: formats", case 50000063: the first rows said "a number"."""
    monkeypatch.setattr(table, "CHUNK_ROWS", 2)
    (tmp_path / "t.csv").write_text('s,y\n926.55,0\n1.5,1\n"3,019.59",0\n7,1\n')
    assert read_scores(open_table(tmp_path / "t.csv"), "s", "y").scores.tolist()[2] == 3019.59
    (tmp_path / "t.csv").write_text('s,y\n926.55,0\n1.5,1\n"3,019",0\n7,1\n')
    with pytest.raises(TableError, match=r"row 4.*'3,019' is not a number"):
        read_scores(open_table(tmp_path / "t.csv"), "s", "y")


def test_whole_numbers_of_any_chunk_tell_what_a_point_is(tmp_path, monkeypatch):
    """1200 beside 1.270: numbers of thousands have no point, so 1.270 is no thousand."""
    monkeypatch.setattr(table, "CHUNK_ROWS", 2)
    (tmp_path / "t.csv").write_text("s,y\n1200,0\n1.270,1\n7,0\n8,1\n")
    assert read_scores(open_table(tmp_path / "t.csv"), "s", "y").scores.tolist()[1] == 1.27


def test_what_separates_as_well_as_a_comma_separates(tmp_path):
    (tmp_path / "t.csv").write_text("s,t;y\n1,5;0\n2,5;1\n")
    assert open_table(tmp_path / "t.csv").names == ("s,t", "y")


def test_amounts_may_be_zero_and_not_negative(tmp_path):
    (tmp_path / "t.csv").write_text("s,y,a\n1,0,0\n2,1,3\n")
    found = read_scores(open_table(tmp_path / "t.csv"), "s", "y", amounts="a")
    assert found.amounts.tolist() == [0, 3]
    (tmp_path / "t.csv").write_text("s,y,a\n1,0,0\n2,1,-3\n")
    with pytest.raises(TableError, match="row 3, column 'a': -3 is negative"):
        read_scores(open_table(tmp_path / "t.csv"), "s", "y", amounts="a")


@pytest.mark.parametrize(
    ("clock", "minutes"),
    [
        *(("12:00 AM", 0), ("1:05 AM", 65), ("12:30 PM", 750), ("1:05 PM", 785), ("23:59", 1439)),
        *(("13:00 PM", None), ("0:30 AM", None), ("24:30", None)),
    ],
)
def test_the_hours_of_two_clocks(clock, minutes):
    found = days_of(f"1970-01-02 {clock}")
    assert found == (None if minutes is None else pytest.approx(1 + minutes / 1440, abs=1e-9))


def test_a_file_of_somebody_else_is_told(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("s,y\n1,0\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(TableError, match=r"t\.csv: cannot be read: you may not open it"):
        open_table(tmp_path / "t.csv")
