"""What the site promises of itself: its size, its references, its sample sizes."""

import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import setpoint
from docs import commands, make_notebook, names, words
from docs.pictures import PICTURES
from setpoint import certify, cli

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = re.compile(r"^Examples:\n(?:(?!    >>>).*\n)*? +>>>", re.MULTILINE)
NUMBER = re.compile(r"-?\d+\.?\d*")
SIZES = (DOCS / "choosing.md").read_text(encoding="utf-8").partition("## A sample size")[2]


def test_pages_stay_within_their_words():
    found = words.pages()
    assert len(found) > 40
    assert sum(map(sum, found.values())) <= words.MOST
    prose, tables, code = (sum(kind) for kind in zip(*found.values(), strict=True))
    assert prose > tables + code  # most of it is prose


def test_words_are_counted_as_a_reader_meets_them():
    page = (
        "Two words\n\n| a | b |\n| --- | --- |\n| c d | e |\n\n```sh\nmake test\n```\n<!-- no -->"
    )
    assert words.count(page) == (2, 5, 2)


def test_the_page_of_commands_has_every_command_and_argument():
    page = commands.page()
    assert re.findall(r"^## (.*)$", page, flags=re.MULTILINE) == list(cli.COMMANDS)
    assert "| `--confidence SHARE` |" in page
    assert "| `scores.csv | run/` |" in page


def separated(rows, positive):
    """So many rows of one class, on the right side of 2,000 of the other."""
    scores = np.r_[np.arange(rows) + (1e6 if positive else -1e6), np.arange(2000)]
    return scores, np.r_[np.full(rows, positive), np.full(2000, not positive)]


@pytest.mark.parametrize(
    ("bound", "least"), re.findall(r"^\| `(.*?)` \| ([\d,]+)", SIZES, flags=re.MULTILINE)
)
def test_sample_sizes_are_what_certify_does(bound, least):
    rows, positive = int(least.replace(",", "")), not bound.startswith("fpr")
    assert certify(*separated(rows, positive), bound).certified
    assert not certify(*separated(rows - 1, positive), bound).certified


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_follow_the_theme(name):
    text = (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8")
    assert "currentColor" in text
    assert "prefers-color-scheme" in text
    assert "#ffffff" not in text  # transparent


def test_code_fits_the_width_of_a_page():
    """What is longer is wrapped at 1280 px."""
    long = []
    for file in [
        DOCS.parent / "README.md",
        *DOCS.rglob("*.md"),
        *DOCS.parent.glob("examples/*.py"),
    ]:
        text = re.sub(r"<!--.*?-->", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        code = re.findall(r"^```\w+\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        lines = text.splitlines() if file.suffix == ".py" else "\n".join(code).splitlines()
        lines += [line[4:] for line in text.splitlines() if line.startswith("    ")]
        long += [(file.name, line) for line in lines if len(line) > 103]
    assert long == []


def test_every_picture_says_its_message_in_words():
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    shown = [
        (file.name, alt)
        for file in pages
        for alt, _ in re.findall(r"!\[(.*?)\]\((.*?)\)", file.read_text(encoding="utf-8"))
        if "badge_" not in _
    ]
    assert len(shown) > 20
    assert [(file, alt) for file, alt in shown if len(alt.split()) < 7] == []


def sections():
    """The objects that have a section on an API page, by path."""
    found = {}
    for file in (DOCS / "api").glob("*.md"):
        for path in re.findall(r"^::: (\S+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            found[path] = pkgutil.resolve_name(path)
    return found


def test_every_public_name_has_a_section():
    shown = {id(known) for known in sections().values() if not inspect.ismodule(known)}
    missing = [n for n in names.documented() if id(getattr(setpoint, n)) not in shown]
    assert missing == []


def imported():
    """What pages and examples import from ``setpoint``, or name with its room."""
    files = [DOCS.parent / "README.md", *DOCS.rglob("*.md"), *DOCS.parent.glob("examples/*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for room, listed in re.findall(
        r"^ *from (setpoint[\w.]*) import (\([^)]*\)|[^#\n]*)", text, re.M
    ):
        yield from (f"{room}.{name}" for name in re.findall(r"\w+", listed))
    yield from re.findall(r"`(setpoint(?:\.\w+){2,})", text)


def test_every_name_that_a_page_imports_has_a_section():
    shown = {id(known) for known in sections().values()}
    for module in filter(inspect.ismodule, sections().values()):
        shown |= {id(known) for known in vars(module).values() if inspect.isfunction(known)}
        shown |= {id(known) for known in vars(module).values() if inspect.isclass(known)}
    missing = set()
    for path in imported():
        room, _, name = path.rpartition(".")
        known = getattr(pkgutil.resolve_name(room), name)
        if (inspect.isclass(known) or inspect.isfunction(known)) and id(known) not in shown:
            missing.add(path)
    assert missing == set()


def test_every_section_has_an_example_that_renders():
    """``Examples:`` is what the reference renders as code; doctest runs it."""
    known = [k for k in sections().values() if inspect.isclass(k) or inspect.isfunction(k)]
    lacking = {k.__name__ for k in known if not EXAMPLE.search(inspect.getdoc(k) or "")}
    assert len(known) > 60
    assert lacking == set()


def test_the_notebook_says_what_its_cells_print():
    """The words exactly, the figures but for rounding; MAPIE's cell where MAPIE is installed."""
    committed = make_notebook.committed()
    assert make_notebook.FILE.read_text(encoding="utf-8") == make_notebook.notebook(committed)
    printed, names = make_notebook.run()
    assert any("MAPIE " in shown for shown in committed)
    for was, now in zip(committed, printed, strict=True):
        if now != "pip install mapie\n":
            assert NUMBER.sub("#", was) == NUMBER.sub("#", now)
            figures = [[float(n) for n in NUMBER.findall(shown)] for shown in (was, now)]
            np.testing.assert_allclose(*figures, rtol=0.05)
    # 300 draws: 5 % and three standard errors are 26; a tuned threshold breaks about half
    assert names["broken"]["certified"] <= 26
    assert names["broken"]["tuned"] > 100
    assert names["found"]["certified"] <= 0.01
