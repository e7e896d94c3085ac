"""One style for all pictures: transparent SVG, colours of Okabe and Ito, markers.

Text and axes are drawn in ``INK``, which :func:`save` replaces by ``currentColor``. Shown by itself
(in the README) a picture follows the reader's preference for light or dark; the site puts the SVG
into the page (``docs/hooks.py``), where it follows the theme's switch.
"""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

IMAGES = Path(__file__).parent / "images"
INK = "#123456"
BLUE, ORANGE, GREEN, VERMILION, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8C8C8C"
OURS, USUAL, POSITIVE, NEGATIVE = GREEN, VERMILION, ORANGE, BLUE
DARKER = {OURS: "o", USUAL: "s", POSITIVE: "^", NEGATIVE: "v", GREY: "D"}
"""A marker for each colour, so that no message rests on colour alone."""
THEME = "svg{color:#24292f}@media (prefers-color-scheme:dark){svg{color:#d7dae0}}"

plt.rcParams.update(
    {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.transparent": True,
        "svg.fonttype": "path",
        "font.size": 11,
        "axes.titlesize": 12.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        **dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
        ),
    }
)


def save(figure: Figure, name: str, folder: Path = IMAGES) -> None:
    """Write ``name.svg`` with text in the colour of its surroundings."""
    file = folder / f"{name}.svg"
    with plt.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    text = file.read_text(encoding="utf-8").replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(id="|href="#|url\(#)', rf"\1{name}_", text)  # ids stay unique on a page
    text = text.replace("<defs>", f"<style>{THEME}</style>\n <defs>", 1)
    file.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
