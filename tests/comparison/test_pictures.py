import re

import numpy as np
import pytest

from setpoint.comparison.pictures import COLOURS, draw_corner
from setpoint.results import Curve


def panel() -> dict[str, list[Curve]]:
    """Two runs of each method; at an FPR of 1 % the means are 40 and 51.2 %."""
    levels = np.array([0.0, 0.005, 0.02, 1.0])
    runs = {"cross-entropy": (0.35, 0.45), "ours": (0.5, 0.524)}
    return {
        name: [Curve(levels, np.array([0.0, at, 0.8, 1.0])) for at in found]
        for name, found in runs.items()
    }


@pytest.fixture
def draw(tmp_path):
    def draw(name: str, panels: int = 1) -> bytes:
        path = tmp_path / name
        drawn = {f"model {i}": panel() for i in range(panels)}
        draw_corner([path], drawn, held=0.01, title="a title", note="a note")
        return path.read_bytes()

    return draw


def test_it_writes_png(draw):
    assert draw("picture.png").startswith(b"\x89PNG")


def test_all_words_and_the_values_at_the_held_point_are_in_the_picture(draw):
    text = draw("picture.svg", panels=2).decode()  # text is drawn as paths, with a comment each
    assert "found at 1 % false alarms" in text
    for words in ("a title", "a note", "model 0", "model 1", "40.0 %", "51.2 %", "cross-entropy"):
        assert words in text


def test_the_same_results_give_the_same_file(draw):
    assert draw("one.svg") == draw("two.svg")


def test_nothing_is_drawn_twice_or_left_out(draw):
    one, three = draw("one.svg", panels=1), draw("three.svg", panels=3)
    assert [three.count(b"<!-- model %d -->" % i) for i in range(3)] == [1, 1, 1]
    assert three.count(b'id="axes_') == 3 * one.count(b'id="axes_')


def test_every_run_is_a_thin_line_and_the_mean_a_bold_one(draw):
    text = draw("picture.svg").decode()
    for colour in COLOURS:
        assert len(re.findall(f"stroke: {colour}; stroke-opacity: 0.5", text)) == 2  # two runs
        assert len(re.findall(f"stroke: {colour}; stroke-width: 2.6", text)) == 1


def test_the_dots_stand_on_the_held_line(draw):
    text = draw("picture.svg").decode()
    (line,) = re.findall(r'd="M ([\d.]+) [\d. L\n]+" [^>]*stroke-dasharray', text)
    for colour in COLOURS:
        dot, _in_the_legend = re.findall(rf'<use [^>]*x="([\d.]+)"[^>]*fill: {colour}', text)
        assert dot == line


def test_drawing_leaves_no_global_state_behind(fresh_python, tmp_path):
    """No pyplot: it would pick a window system and keep every figure."""
    script = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(__file__.rsplit("/", 1)[0])!r})
from test_pictures import panel
from setpoint.comparison.pictures import draw_corner
draw_corner([Path({str(tmp_path)!r}) / "a.png"], {{"m": panel()}}, held=0.01, title="t", note="n")
assert "matplotlib.pyplot" not in sys.modules
"""
    fresh_python(script)
