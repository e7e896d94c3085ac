"""Badges that state facts of pyproject.toml; ``python -m docs.badges`` writes them."""

import re
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{all}" height="20" role="img">
<title>{left}: {right}</title>
<rect width="{all}" height="20" rx="3" fill="#444c56"/>
<path d="M{w} 0h{v}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-{v}z" fill="#00664b"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{a}" y="14">{left}</text><text x="{b}" y="14">{right}</text></g></svg>
"""


def facts() -> dict[str, str]:
    """What the badges say, read from pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    assert settings["tool"]["mypy"]["strict"]
    needs = [re.match(r"[\w-]+", line)[0] for line in project["dependencies"]]
    return {
        "licence": project["license"],
        "python": project["requires-python"].removeprefix(">=") + "+",
        "types": "mypy --strict",
        "needs": ", ".join(needs),
    }


def badge(left: str, right: str) -> str:
    """One badge as SVG."""
    w, v = 7 * len(left) + 10, 7 * len(right) + 10
    return SVG.format(left=left, right=right, all=w + v, w=w, v=v - 3, a=w / 2, b=w + v / 2)


if __name__ == "__main__":
    for name, text in facts().items():
        (ROOT / "docs" / "images" / f"badge_{name}.svg").write_text(badge(name, text))
