"""The front door: every public name, none of the weight, and no torch where none is needed."""

import ast
import importlib
import re
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import setpoint


def test_importing_the_package_imports_neither_torch_nor_numpy(fresh_python):
    code = (
        "import sys, setpoint; print({'torch', 'numpy', 'scipy'} & set(sys.modules) or 'nothing')"
    )
    assert fresh_python(code) == "nothing"


def test_the_algebra_imports_no_array_library(fresh_python):
    code = """
import sys
from setpoint import fpr, fnr, maximum
from setpoint.rates import Counts
counts = {(): Counts(3.0, 1.0, 2.0, 4.0, 5.0, 5.0)}
value = maximum(fpr, fnr).of(counts)
assert value == 0.4, value
print({'torch', 'numpy'} & set(sys.modules) or 'nothing')
"""
    assert fresh_python(code) == "nothing"


TORCH_FREE = (
    *("_checks", "batch", "rates", "axes", "problems", "fairness"),
    *("certificates", "monitoring", "results", "datasets", "reports", "tables", "cli"),
)
THERE = [room for room in TORCH_FREE if find_spec(f"setpoint.{room}")]


@pytest.mark.parametrize("room", THERE)
def test_the_torch_free_rooms_are_torch_free(fresh_python, room):
    code = f"import sys, setpoint.{room}; print('torch' in sys.modules)"
    assert fresh_python(code) == "False"


def test_problems_are_parsed_and_evaluated_without_torch(fresh_python):
    code = """
import sys
import numpy as np
import setpoint
from setpoint import Problem, Infeasible, roc_auc, fpr, fnr
from setpoint.axes.scan import place
problem = Problem.parse("minimize fnr on g=1 subject to fpr <= 50 %")
scores, labels, groups = np.array([3.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([1, 1, 1])
assert problem.evaluate(scores, labels, groups=groups) == 0.5
assert problem.choose(scores, labels, groups=groups).thresholds == (2.0,)
assert roc_auc().evaluate(scores, labels) == 0.5
print('torch' in sys.modules)
"""
    assert fresh_python(code) == "False"


# ---- names ---------------------------------------------------------------------------------------
def typed_names():
    """What a type checker sees: the imports of the stub, with the room they come from."""
    stub = Path(setpoint.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    found = {}
    for statement in ast.parse(stub).body:
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            assert alias.asname == alias.name, (
                f"{alias.name} is not re-exported: write `as {alias.name}`"
            )
            assert alias.name not in found, f"{alias.name} stands there twice"
            found[alias.name] = statement.module
    return found


def test_type_checkers_and_python_see_the_same_names():
    assert {*setpoint.__all__, "__version__"} == set(typed_names())


def test_the_door_is_narrow_and_says_everything_once():
    assert len(setpoint.__all__) <= 55
    assert len(setpoint.__all__) == len(set(setpoint.__all__))


def test_dir_lists_all_public_names(fresh_python):
    assert set(dir(setpoint)) >= set(setpoint.__all__)
    assert (
        fresh_python("import setpoint; print(set(setpoint.__all__) <= set(dir(setpoint)))")
        == "True"
    )


@pytest.mark.parametrize("name", setpoint.__all__)
def test_every_name_can_be_imported(name):
    room = importlib.import_module(typed_names()[name])
    assert getattr(setpoint, name) is getattr(room, name) is not None
    assert name in getattr(room, "__all__", [name])


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'setpoint' has no attribute 'fprr'"):
        _ = setpoint.fprr
    assert not hasattr(setpoint, "numpy")


ROOMS = [room.name for room in iter_modules(setpoint.__path__) if room.ispkg]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_exports_what_it_says(room):
    module = importlib.import_module(f"setpoint.{room}")
    exported = getattr(module, "__all__", [])
    for name in exported:
        assert not isinstance(getattr(module, name), ModuleType), name
    assert len(exported) == len(set(exported))


@pytest.mark.parametrize("room", ROOMS)
def test_no_file_has_the_name_of_what_its_room_exports(room):
    """Importing the file would put the module where the function was."""
    module = importlib.import_module(f"setpoint.{room}")
    files = {file.name for file in iter_modules(module.__path__)}
    assert not files & set(getattr(module, "__all__", []))


def test_one_version_everywhere():
    root = Path(__file__).parents[1]
    (newest, *_) = re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text("utf-8"), re.M)
    (cited,) = re.findall(r"^version: (\S+)", (root / "CITATION.cff").read_text("utf-8"), re.M)
    assert newest == cited == setpoint.__version__


def test_what_first_users_stumbled_over_is_held_by_tests_that_exist():
    folder = Path(__file__).parent / "users"
    named = set(re.findall(r"`([a-z_/]+\.py)`", (folder / "README.md").read_text("utf-8")))
    assert len(named) > 20
    assert [
        n for n in named if not (folder / n).exists() and not Path(folder, "../..", n).exists()
    ] == []
    assert len(list(folder.glob("test_*.py"))) == 10


def test_lower_bounds_are_those_that_are_tested():
    """`make test-oldest` installs what pyproject.toml allows at least."""
    root = Path(__file__).parents[1]
    allowed = dict(re.findall(r'"([a-z0-9-]+)>=([\d.]+)"', (root / "pyproject.toml").read_text()))
    pinned = re.findall(
        r"^([a-z0-9-]+)==([\d.]+)$", (root / "constraints-oldest.txt").read_text(), re.M
    )
    known = {name: version for name, version in pinned if not name.startswith(("pytest", "hypo"))}
    assert {"numpy", "scipy", "scikit-learn", "torch", "jinja2", "safetensors"} <= set(known)
    for name, version in known.items():
        assert f"{version}.".startswith(f"{allowed[name]}."), name


def test_the_package_is_typed_and_has_a_version():
    assert Path(setpoint.__file__).with_name("py.typed").exists()
    assert all(part.isdigit() for part in setpoint.__version__.split("."))
