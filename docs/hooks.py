"""What the site adds to Markdown.

The README is the first part of the front page; pictures of our style become part of their page, so
that they follow the theme; long tables are shown from csv files; the notebook and a live report
page are added;
docstrings name things as Sphinx does, ``:class:`setpoint.Problem```, and show the name alone.
"""

import csv
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs import commands, make_notebook, names

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ROLE = re.compile(r":(?:class|func|meth|attr|mod|data):<code>~?(?:setpoint\.)?([^<]*)</code>")
PICTURE = re.compile(r'<img alt="([^"]*)" src="(?:\.\./)*images/([^"]*\.svg)" ?/?>')
EMPTY = re.compile(r"<th( [^>]*)?></th>")
SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'
SECTION = re.compile(  # its label is an icon; the title follows
    r'<nav( class="md-nav" data-md-level="\d") aria-labelledby="\w+"'
    r'(.*?md-icon"></span>\s*(\w[^<\n]*\w))',
    re.DOTALL,
)
STYLE = re.compile(r"<style>svg\{color.*?</style>")  # of docs/style.py


def on_files(files: Files, config: Any) -> Files:
    """Add the notebook as a page, and a report page that is made now, for docs/live.md."""
    files.append(File.generated(config, "fraud.md", content=make_notebook.page()))
    files.append(File.generated(config, "live/report.html", content=live_page()))
    return files


def live_page() -> str:
    """The report page of a certificate for made-up payments."""
    import numpy as np

    from setpoint import certify
    from setpoint.reports import report

    random = np.random.default_rng(0)
    fraud = random.random(20_000) < 0.03
    score = random.normal(size=20_000) + 3 * fraud
    channel = np.array(["web", "branch", "phone"])[random.choice(3, 20_000, p=[0.6, 0.3, 0.1])]
    return report(
        score,
        fraud,
        certify(score, fraud, "fpr <= 0.01"),
        groups={"channel": channel},
        costs=(500, 5),
        positive="fraud",
        negative="legitimate payments",
        action="block",
    )


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the README, csv files, commands and names into their pages."""
    if page.file.src_uri == "index.md":
        return markdown.replace("<!-- README -->", readme())
    if page.file.src_uri == "tables.md":
        return markdown.replace("<!-- tables -->", "\n".join(map(table, tables())))
    if page.file.src_uri == "commands.md":
        return markdown.replace("<!-- commands -->", commands.page())
    if page.file.src_uri == "reference.md":
        return markdown.replace("<!-- names -->", names.page())
    return markdown


def readme() -> str:
    """The README, with links as seen from the folder of pages."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.replace("](docs/", "](").replace(" · [Changes](CHANGELOG.md)", "")


def tables() -> list[Path]:
    """The csv files of long tables."""
    return sorted((DOCS / "tables").glob("*.csv"))


def table(file: Path) -> str:
    """A heading, a link to the file, and the rows, folded."""
    with file.open(encoding="utf-8", newline="") as opened:
        head, *rows = [[cell.replace("|", "\\|") for cell in row] for row in csv.reader(opened)]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        [
            f"## {file.stem}\n\n[{file.name}]({file.name}), {len(rows)} rows\n",
            '<details markdown="1"><summary>show the rows</summary>\n',
            *("| " + " | ".join(line) + " |" for line in lines),
            "\n</details>\n",
        ]
    )


def on_page_content(html: str, **_: Any) -> str:
    """Shorten names of docstrings, and put pictures into the page."""
    html = EMPTY.sub(r"<td\1></td>", html)  # a corner of a table is no header
    return PICTURE.sub(_inline, ROLE.sub(r"<code>\1</code>", html))


def on_post_page(output: str, **_: Any) -> str:
    """Name what the theme leaves without a name: the search, and sections that have a page."""
    output = output.replace(SEARCH, f'{SEARCH} aria-label="Search"')
    return SECTION.sub(r'<nav\1 aria-label="\3"\2', output)


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """The page for addresses that are not there is no page to MkDocs."""
    return on_post_page(output_content) if template_name == "404.html" else output_content


def _inline(found: re.Match[str]) -> str:
    """The picture itself, named by its alternative text; others stay as they are."""
    text = (DOCS / "images" / found[2]).read_text(encoding="utf-8")
    if not STYLE.search(text):
        return found[0]
    svg = STYLE.sub("", text[text.index("<svg") :])
    return svg.replace("<svg ", f'<svg role="img" aria-label="{found[1]}" class="picture" ', 1)
