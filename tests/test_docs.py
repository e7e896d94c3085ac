"""Every page runs: its python blocks and its commands, in order, in one session."""

from pathlib import Path

import pytest
from blocks import blocks, included, run_blocks

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
RUN = [page for page in PAGES if blocks(page.read_text("utf-8"))]


def test_there_are_pages_to_run():
    assert len(RUN) >= 8


# matplotlib, Lightning and others advise about this machine; our own warnings are not of this kind
@pytest.mark.filterwarnings("ignore::UserWarning:pytorch_lightning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks(page.read_text("utf-8"), page, capsys)


def test_examples_that_pages_include_are_run_by_a_test():
    from integrations.test_examples import SHOWN

    files = {name for page in PAGES for name in included(page.read_text("utf-8"))}
    assert files == {f"examples/{name}.py" for name in SHOWN}
