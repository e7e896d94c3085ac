"""examples/watch_stream.py runs and finds its break."""

import runpy
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "examples" / "watch_stream.py"


def test_the_stream_of_parquet_files(capsys):
    pytest.importorskip("pandas")
    runpy.run_path(str(FILE))["main"]()
    out = capsys.readouterr().out
    assert "2024-05-12 holds" in out
    assert "broken since 2024-05-13: fpr" in out
    assert "recalibrated: score >" in out
