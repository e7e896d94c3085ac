import pytest

from setpoint.tables.csv_file import safe_cell, write_csv


@pytest.mark.parametrize(
    "formula",
    [
        "=1+1",
        '=HYPERLINK("http://example.com")',
        "+1+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        "\uff1d1",
        "-",
        "+inf",
        "-nan",
        "-1_0",
    ],
)
def test_what_a_spreadsheet_would_compute_is_quoted(formula):
    assert safe_cell(formula) == "'" + formula


@pytest.mark.parametrize("plain", ["", "x", "a=b", "1", "-1.5", "+3", "-2e-7", "'=1", "é"])
def test_everything_else_stays(plain):
    assert safe_cell(plain) == plain


def test_a_file_is_written_completely_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def rows():
        yield ["1"]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_csv(path, ["a"], rows())
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    assert write_csv(path, ["a"], [["1"], ["x, y"]]) == 2
    assert path.read_text() == 'a\n1\n"x, y"\n'
