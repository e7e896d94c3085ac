"""Pictures of every page, wide and light, wide and dark, and on a phone: ``make screenshots``.

``python -m docs.screenshots build/site build/screenshots`` opens a built site in a headless
Chromium and writes ``light/``, ``dark/`` and ``phone/``, a PNG for every page.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser.chromium import Chromium, find
from browser.test_site import served

LOOKS = {"light": (1280, False), "dark": (1280, True), "phone": (390, False)}


def main(site: Path, out: Path) -> None:
    """Open every page in every look."""
    program = find()
    if program is None:
        raise SystemExit("No Chromium found: `apt-get install chromium`, or name one in $CHROMIUM.")
    browser = Chromium(program)
    try:
        with served(site) as address:
            for file in sorted(site.rglob("*.html")):
                name = file.relative_to(site).with_suffix("").as_posix()
                for look, (width, dark) in LOOKS.items():
                    browser.open(f"{address}/{name}.html", width=width, dark=dark)
                    picture = out / look / f"{name.replace('/', '_')}.png"
                    picture.parent.mkdir(parents=True, exist_ok=True)
                    picture.write_bytes(browser.screenshot())
    finally:
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
