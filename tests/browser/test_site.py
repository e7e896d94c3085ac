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
COMMON = (".md-header", ".md-sidebar--primary")  # alike on every page
WHOLE = ("index", "scores", "loop", "solvers", "certificates", "commands", "api/estimators", "live")
NO_COLORS = {"color-contrast": {"enabled": False}}  # which takes most of the time
SOURCES = "document.querySelectorAll('details.quote pre').forEach(source => source.remove())"


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


@pytest.mark.parametrize("half", [0, 1])
def test_every_page_fits_its_width_and_axe_finds_nothing(browser, axe, site, half):
    """All pages as wide, light ones and on a phone; colours in the dark on one of each kind."""
    found = {}
    with served(site) as address:
        for file in sorted(site.rglob("*.html"))[half::2]:
            name = file.relative_to(site).with_suffix("").as_posix()
            whole, page = name in WHOLE, f"{address}/{name}.html"
            without, rules = ((), {}) if whole else (COMMON, NO_COLORS)
            browser.open(page, width=1280)
            found[name, "wide"] = too_wide(browser, 1280)
            browser.js(SOURCES)  # long and folded, in the colours of other code
            found[name, "wide"] += violations(browser, axe, without)
            if whole:
                browser.open(page, width=390, dark=True)
            else:
                browser.look(width=390)
            found[name, "phone"] = too_wide(browser, 390) + violations(browser, axe, without, rules)
    assert len(found) > 60
    assert {name: faults for name, faults in found.items() if faults} == {}


def too_wide(browser, width):
    wide = browser.js("document.documentElement.scrollWidth") > width
    return ["page scrolls sideways"] * wide + ["code scrolls sideways"] * bool(browser.js(WIDE))


def test_the_theme_follows_the_system(browser, site):
    for dark in (False, True):
        browser.open(site / "index.html", dark=dark)
        scheme = browser.js("document.body.getAttribute('data-md-color-scheme')")
        assert scheme == ("slate" if dark else "default")


def test_wide_tables_scroll_by_the_keyboard_and_have_a_name(browser, site):
    for width, wide in ((1280, 0), (390, 2)):
        browser.open(site / "choosing.html", width=width)
        boxes = browser.js("""[...document.querySelectorAll('.md-typeset__scrollwrap')]
            .map(box => [box.tabIndex, box.ariaLabel,
                getComputedStyle(box).backgroundAttachment])""")
        focused = [name for index, name, _ in boxes if index == 0]
        assert len(focused) == wide
        assert all(name.startswith("Table: ") for _, name, _ in boxes)
        # a shadow at either edge, and what covers it at the ends
        assert {shadow for *_, shadow in boxes} == {"local, local, scroll, scroll"}


@pytest.mark.parametrize(
    ("page", "kind", "heading"),
    [("scores", "svg.picture", "2. Certify"), ("peers", "img[src$=png]", "What a step costs")],
)
def test_a_picture_on_a_phone_is_large_enough_to_read(browser, site, page, kind, heading):
    browser.open(site / f"{page}.html", width=390)
    box, picture, index, name = browser.js(f"""(() => {{
        const picture = document.querySelector('.md-content {kind}'), box = picture.parentElement;
        return [box.clientWidth, picture.clientWidth, box.tabIndex, box.ariaLabel];
    }})()""")
    assert box < 390 < picture < 700
    assert (index, name) == (0, f"Picture: {heading}")


def test_console_output_is_not_wrapped_on_a_phone(browser, site):
    """The lines of ``docs.console`` and tables in columns; commands and code may wrap."""
    for page in ("scores", "tutorial", "pages", "loop", "solvers", "fraud"):
        browser.open(site / f"{page}.html", width=390)
        room, longest = browser.js("""(() => {
            const shown = '.language-console pre > code, .language-text pre > code';
            const codes = [...document.querySelectorAll(shown)], code = codes[0];
            const lines = codes.flatMap(code => code.textContent.split('\\n'));
            const columns = lines.filter(line => /\\S {2,}\\S/.test(line)).map(line => line.length);
            const probe = document.createElement('span'), style = getComputedStyle(code);
            probe.textContent = 'x'.repeat(62);
            probe.style.whiteSpace = 'pre';
            code.append(probe);
            const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
            const width = probe.getBoundingClientRect().width;
            return [code.clientWidth - padding - width, Math.max(0, ...columns)];
        })()""")
        assert room >= 0
        assert longest <= 62, page


def test_a_page_that_is_not_there_leads_on(browser, site):
    with served(site) as address:
        browser.open(f"{address}/404.html")
        links = browser.js("""[...document.querySelectorAll('.md-content a')]
            .map(link => link.href)""")
        assert len(links) == 3
        for link in links:
            browser.open(link)
            assert "not found" not in browser.js("document.querySelector('h1').innerText").lower()
        assert browser.js(SEARCH) > 0


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
