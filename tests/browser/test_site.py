"""The site in a real browser: nothing scrolls sideways, search works, axe finds nothing."""

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from browser.test_accessibility import violations

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
PAGES = ("index", "scores", "loop", "solvers", "certificates", "commands", "api/estimators", "live")
WIDE = """[...document.querySelectorAll('.md-content pre code')]
    .filter(code => code.scrollWidth > code.clientWidth + 1).length"""
SEARCH = """new Promise(done => {
    const ask = () => {
        const field = document.querySelector('[data-md-component=search-query]');
        if (!field) return;
        field.focus();
        field.value = 'certificate';
        field.dispatchEvent(new KeyboardEvent('keyup', {key: 'e', bubbles: true}));
    };
    const look = rest => {
        ask();
        const found = document.querySelectorAll('.md-search-result__item').length;
        found || !rest ? done(found) : setTimeout(look, 300, rest - 1);
    };
    setTimeout(look, 500, 40);
})"""
THEME = "landmark-unique"  # of the theme's navigation, on every site made with it


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(folder)]
    environment = {**os.environ, "PYTHONPATH": "src", "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(words, cwd=ROOT, env=environment, check=True, timeout=300)
    return folder


@contextmanager
def served(folder):
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_scrolls_sideways(browser, site, name):
    for width in (1280, 390):
        browser.open(site / f"{name}.html", width=width)
        assert browser.js(WIDE) == 0
        assert browser.js("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(browser, axe, site, name, dark):
    browser.open(site / f"{name}.html", dark=dark)
    scheme = browser.js("document.body.getAttribute('data-md-color-scheme')")
    assert scheme == ("slate" if dark else "default")
    found = violations(browser, axe)
    assert [one for one in found if one[0] != THEME] == []


def test_opened_as_a_file_the_page_says_that_search_needs_a_server(browser, site):
    for width in (1280, 390):
        browser.open(site / "index.html", width=width)
        assert "Search needs a server" in browser.js("document.body.innerText")
        assert browser.js("document.querySelectorAll('.md-search').length") == 0


def test_search_works_from_a_server(browser, site):
    with served(site) as address:
        browser.call("Page.navigate", url=f"{address}/index.html")
        assert browser.js(SEARCH) > 0
        assert "Search needs a server" not in browser.js("document.body.innerText")


def test_pictures_are_part_of_the_page_and_named(browser, site):
    browser.open(site / "index.html", dark=True)
    color, name = browser.js("""(() => {
        const picture = document.querySelector('svg.picture');
        return [getComputedStyle(picture).color, picture.getAttribute('aria-label')];
    })()""")
    assert name.startswith("The score densities")
    assert min(int(part) for part in color.removeprefix("rgba(").split(",")[:3]) > 150  # light ink


def test_black_plots_are_inverted_in_the_dark(browser, site):
    for name in ("cases/intrusion", "study", "cost"):
        for dark in (False, True):
            browser.open(site / f"{name}.html", dark=dark)
            filters = browser.js("""[...document.querySelectorAll('.md-content img')]
                .map(picture => getComputedStyle(picture).filter.includes('invert'))""")
            assert filters == [dark] * len(filters) != []


def test_the_explorer_is_live(browser, site):
    browser.open(site / "live.html")
    found = browser.js("""(() => {
        const inner = document.querySelector('iframe.live').contentDocument;
        return inner ? inner.querySelectorAll('input[type=range]').length : -1;
    })()""")
    assert found in (1, -1)  # a browser may keep files apart
    browser.open(site / "live" / "report.html")
    assert browser.js("document.querySelectorAll('input[type=range]').length") >= 1
