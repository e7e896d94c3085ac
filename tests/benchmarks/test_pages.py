"""Results go into pages; long tables become csv files beside them."""

import csv

import pytest

from benchmarks.common.pages import MOST, fill


def written(tmp_path, text):
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- one -->\nold\n<!-- /one -->\nafter\n")
    fill(file, "one", text, tmp_path / "tables")
    return file.read_text()


def table(rows):
    lines = ["| a | b \\| c |", "| --- | --- |", *(f"| {i} | x, {i} |" for i in range(rows))]
    return "\n".join(lines)


def test_text_goes_between_its_marks(tmp_path):
    text = f"new\n\n{table(MOST)}\n\nend"
    assert written(tmp_path, text) == f"before\n<!-- one -->\n{text}\n<!-- /one -->\nafter\n"
    assert not (tmp_path / "tables").exists()


def test_a_page_without_the_marks_is_refused(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("nothing here")
    with pytest.raises(ValueError, match="no place for 'two'"):
        fill(file, "two", "new", tmp_path)


def test_long_tables_become_files(tmp_path):
    shown = written(tmp_path, f"{table(MOST + 1)}\n\nbetween\n\n{table(MOST + 5)}")
    assert "| 0 |" not in shown
    assert "](tables.md#page_one), [csv](tables/page_one.csv)" in shown
    assert "between" in shown
    with (tmp_path / "tables" / "page_one_2.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["a", "b | c"]
    assert rows[-1] == [str(MOST + 4), f"x, {MOST + 4}"]
    written(tmp_path, f"{table(MOST + 1)}")  # again with one table: no file is left over
    assert [file.name for file in (tmp_path / "tables").iterdir()] == ["page_one.csv"]
