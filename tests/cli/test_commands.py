import re
import subprocess
import sys

import pytest
from cli.test_outputs import options

from setpoint import __version__, cli


def run(*arguments: str) -> int:
    """The exit code, also where argparse leaves by itself."""
    try:
        return cli.main(arguments)
    except SystemExit as leaving:
        return int(leaving.code or 0)


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"setpoint {__version__}\n"


def test_the_module_is_the_command():
    asked = [sys.executable, "-m", "setpoint", "--version"]
    shown = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert shown.stdout == f"setpoint {__version__}\n"


def test_help_names_every_command_and_the_exit_codes(capsys):
    assert run("--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 % false alarms" in text
    assert "Exit codes" in text
    for name in cli.COMMANDS:
        assert name in text
        assert run(name, "--help") == 0


def test_no_command_is_bad_usage_with_help(capsys):
    assert run() == 2
    assert "commands" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dmeo"], "there is no command 'dmeo'. Did you mean demo?"),
        (["demo", "--seeds", "0"], "whole number of at least 1; got '0'"),
        (["demo", "--seeds", "three"], "whole number of at least 1; got 'three'"),
        (["demo", "--fast"], "setpoint demo: error: there is no option '--fast'. (setpoint demo"),
        (["card", "c.json", "--jsno"], "there is no option '--jsno'. Did you mean --json?"),
        (["card", "c.json", "x"], "no place for 'x'. Without an option it takes certificate.json"),
        (["--verison"], "setpoint: error: there is no option '--verison'. Did you mean --version?"),
    ],
)
def test_bad_usage_is_told_in_a_line(capsys, arguments, message):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_a_file_in_the_way_is_told_before_training(capsys, tmp_path):
    (tmp_path / "taken").write_text("mine")
    for out in (tmp_path / "taken", tmp_path / "taken" / "below"):
        assert run("demo", "--out", str(out)) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"--out {out} cannot be made a folder" in error
    assert (tmp_path / "taken").read_text() == "mine"


def test_missing_extras_are_named_with_the_cure(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(cli.common, "find_spec", lambda name: None)
    assert run("demo", "--out", str(tmp_path / "out")) == 2
    assert capsys.readouterr().err == (
        'setpoint: error: rich and matplotlib not found: pip install "setpoint[demo]"\n'
    )
    assert not (tmp_path / "out").exists()


def test_one_missing_extra_is_named_alone(capsys, monkeypatch, tmp_path):
    there = cli.common.find_spec
    monkeypatch.setattr(cli.common, "find_spec", lambda n: None if n == "matplotlib" else there(n))
    assert run("demo", "--out", str(tmp_path)) == 2
    assert "error: matplotlib not found" in capsys.readouterr().err


def test_interrupting_is_no_traceback(capsys, monkeypatch, tmp_path):
    def interrupted(_given):
        raise KeyboardInterrupt

    monkeypatch.setattr("setpoint.cli.demo.run", interrupted)
    assert run("demo") == 130
    assert capsys.readouterr().err == "Stopped.\n"


ROOMS = (
    "axes certificates datasets export problems rates reports results runs tables "
    "cli cli.certify cli.check cli.report cli.card cli.predict cli.train cli.front cli.demo"
)


def test_torch_free_rooms_stay_torch_free(fresh_python):
    script = (
        "import sys, importlib\n"
        f"for room in {ROOMS!r}.split():\n"
        "    importlib.import_module(f'setpoint.{room}')\n"
        "    assert 'torch' not in sys.modules, room"
    )
    fresh_python(script)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_defaults_that_help_names_are_those_of_the_parser(command):
    for action in options(command):
        told = re.search(r"default: ([\d.]+)", action.help or "")
        if told and isinstance(action.default, (int, float)):
            assert float(told[1]) == action.default, action.dest
