import json
import sys
from dataclasses import replace

import pytest
import torch

from setpoint.pareto import Front, FrontPoint

POINTS = (
    FrontPoint(0, 3.0, 0.0, status="settled", steps=9, measures={"accuracy": 0.7}),
    FrontPoint(1, 2.0, 1.5, level=1.0, measures={"accuracy": float("nan")}),
    FrontPoint(2, 1.0, 1.25, level=1.3, measures={"accuracy": 0.75}),
    FrontPoint(3, 0.0, 2.0, measures={"accuracy": 0.8}),
)
STATES = [{"w": torch.full((2,), float(i)), "n": torch.tensor(i)} for i in range(4)]
FRONT = Front(("loss", "gap"), "barrier", POINTS, STATES, {"names": ["loss", "gap"], "seed": 3})


def test_what_a_front_says_of_itself():
    assert FRONT.non_dominated == (True, False, True, True)
    assert FRONT.gaps == (None, 0.5, pytest.approx(-0.05), None)
    assert FRONT.reference == (3.0, 2.0)
    assert FRONT.hypervolume() == pytest.approx(2 * 0.75)
    assert FRONT.hypervolume((4.0, 3.0)) == pytest.approx(4 * 1 + 3 * 0.75 + 1 * 1.25)


def test_the_best_point_within_a_bound():
    assert FRONT.best(at_most=1.9).place == 2
    assert FRONT.best(at_most=1.0).place == 0
    with pytest.raises(ValueError, match="No point has gap of at most -1; the least is 0"):
        FRONT.best(at_most=-1)


def test_the_table_has_every_number_and_names_dominated_points():
    lines = str(FRONT).splitlines()
    assert " ".join(lines[0].split()) == "place loss gap at most g - c accuracy status"
    assert lines[1].split() == ["0", "3", "0", "0.7", "settled"]
    assert lines[2].split() == ["1", "2", "1.5", "1", "+0.5", "nan", "dominated"]
    assert lines[5] == "3 of 4 points are not dominated; hypervolume 1.5 below (3, 2)."


def test_json_keeps_everything_but_the_weights():
    text = FRONT.to_json()
    plain = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [p["non_dominated"] for p in plain["points"]] == [True, False, True, True]
    assert plain["points"][1]["gap"] == 0.5
    assert plain["hypervolume"] == pytest.approx(1.5)
    back = Front.from_json(text)
    assert back.to_json() == text
    assert back.points[2] == POINTS[2]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "setpoint front 99"}', "3"])
def test_other_json_is_refused(text):
    with pytest.raises(ValueError, match="not a front that setpoint wrote"):
        Front.from_json(text)


def test_a_saved_front_is_loaded_with_its_weights(tmp_path):
    FRONT.save(tmp_path)
    assert {p.suffix for p in tmp_path.rglob("*") if p.is_file()} == {".safetensors"}
    back = Front.load(tmp_path)
    assert back.points[0] == POINTS[0]
    assert back.names == FRONT.names
    assert len(back.state_dicts) == 4
    assert [int(state["n"]) for state in back.state_dicts] == [0, 1, 2, 3]
    assert [int(state["n"]) for state in back.state_dicts[1:3]] == [1, 2]
    assert back.state_dicts[-1]["w"].tolist() == [3.0, 3.0]


def test_a_front_without_weights_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="no weights to save"):
        replace(FRONT, state_dicts=()).save(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no point of a front"):
        Front.load(tmp_path)


def test_a_picture_is_written(tmp_path):
    pytest.importorskip("matplotlib")
    other = replace(FRONT, points=tuple(replace(p, minimized=p.minimized + 1) for p in POINTS))
    figure = FRONT.plot(tmp_path / "front.svg", linear=other)
    text = (tmp_path / "front.svg").read_text()
    assert text.startswith("<?xml")
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("gap", "loss")
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["barrier", "linear"]
    shown = [tuple(p) for c in axes.collections for p in c.get_offsets().tolist()]
    assert sorted(shown) == sorted(p.pair[::-1] for f in (FRONT, other) for p in f.points)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "setpoint\[demo\]"'):
        FRONT.plot()


def test_ends_that_do_not_trade_are_told():
    assert not FRONT.trouble
    alike = replace(FRONT, points=(POINTS[0], replace(POINTS[3], held=-1.0)))
    assert "end_steps" in str(alike)
    assert "loss and gap are not in conflict" in alike.trouble
