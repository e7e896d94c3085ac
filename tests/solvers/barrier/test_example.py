import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "barrier.py"


def test_the_example_holds_its_bounds_and_settles(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("held") == 3
    assert "settled" in printed
