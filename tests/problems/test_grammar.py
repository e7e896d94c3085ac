"""The page of goals is what the parser's tables say."""

from pathlib import Path

import pytest

from docs.make_goals import EXAMPLES, MEANING, NAMED, page
from setpoint.problems import Problem, as_problem
from setpoint.problems.vocabulary import EXPRESSIONS, GOALS, TARGETS
from setpoint.rates import CATALOGUE


def test_the_page_is_made_from_the_tables():
    written = Path(__file__).parents[2] / "docs" / "goals.md"
    assert written.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("what", EXAMPLES)
def test_every_form_reads_back(what):
    problem = as_problem(EXAMPLES[what])
    assert Problem.parse(str(problem)) == problem


def test_every_name_is_explained():
    assert list(MEANING) == list(CATALOGUE)
    assert {call.partition("(")[0] for call in NAMED} == {*GOALS, *TARGETS, *EXPRESSIONS}
