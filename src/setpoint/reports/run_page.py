"""One self-contained HTML page: nothing is loaded, users' words are only text.

One script of ours moves the threshold (:mod:`setpoint.reports.explorer`); the content security
policy of the page names its hash, so that no other can run.

Templates in ``templates/`` have the words and the order of the sections; they escape every value
(Jinja's autoescape) that is not markup of their own. Numbers come from
:class:`setpoint.results.Findings`, pictures from :mod:`setpoint.reports.charts`.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from setpoint.reports import text, wording
from setpoint.reports.charts import PLOTS
from setpoint.reports.explorer import costs_of, explorer
from setpoint.reports.svg import Plot
from setpoint.results import Findings, RunResult

FILTERS = (
    costs_of,
    text.asked_and_proved,
    text.asked_level,
    text.capital,
    text.clip,
    text.counts,
    text.cut,
    text.date,
    text.full_sentence,
    text.gap_in_points,
    text.level,
    text.name,
    text.percent,
    text.points,
    text.pretty,
    text.price,
    text.rate_interval,
    text.rate_name,
    text.rate_value,
    text.thousands,
    wording.bounds_in_words,
    wording.confidence_in_words,
    wording.headline,
)


def page(run: RunResult, *, script: bool = True) -> str:
    """The report of a run as one HTML document; write it as UTF-8.

    Args:
        run: What to report on.
        script: Whether the threshold can be moved, by a script inside the page. Without it, the
            page has the same tables and pictures.

    Examples:
        >>> import numpy as np
        >>> from setpoint.results import RunResult
        >>> scores, labels = np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 0, 1, 1])
        >>> html = page(RunResult("fpr <= 0.5", {"test": (scores, labels)}, threshold=0.5))
        >>> html.lower().startswith("<!doctype html>")
        True
    """
    found, numbers = Findings(run), count(1)

    def plots(section: str) -> list[tuple[int, Plot]]:
        """The plots of a section, numbered in the order of the page."""
        return [(next(numbers), plot) for draw in PLOTS[section] for plot in draw(found)]

    moves = explorer(found)
    shown = (
        environment()
        .get_template("page.html.jinja")
        .render(
            found=found,
            run=run,
            plots=plots,
            nouns=wording.nouns_of(run),
            convention=wording.interval_convention(found),
            moves=moves,
            script=_template_file("explorer.js") if script and moves else None,
            script_hash=_script_hash(),
            numbers=json_numbers(found),
        )
    )
    return shown + "\n"


@cache
def _template_file(name: str) -> Markup:
    """A style or script of ours, as it is."""
    path = files("setpoint.reports").joinpath(f"templates/{name}")
    return Markup(path.read_text(encoding="utf-8"))


def _script_hash() -> str:
    """What the content security policy lets run: this script and no other."""
    digest = hashlib.sha256(_template_file("explorer.js").encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def environment() -> Environment:
    """The templates with their filters and the style, for every page."""
    made = Environment(
        loader=PackageLoader("setpoint.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update({function.__name__: function for function in FILTERS})
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    made.globals["style"] = _template_file("style.css")
    return made


def _shown(value: object) -> str:
    """What a template writes for a value, before it is escaped; nothing for None."""
    if value is None or isinstance(value, Markup):
        return value or ""
    return text.printable(value)


def json_numbers(found: Findings) -> dict[str, Any]:
    """The numbers of the page for machines, as plain JSON: no scores of single cases, no NaN."""
    run = found.run
    told = {
        "format": "setpoint report 1",
        "goal": run.goal,
        "status": found.verdict.status,
        "confidence": found.verdict.confidence,
        "judged_on": found.judged.name,
        "label": run.label,
        "method": run.method,
        "model": run.model,
        "seed": run.seed,
        "created": run.created,
        "versions": run.versions,
        "splits": [_split(asdict(row), several=bool(run.classes)) for row in found.splits],
        "certificate": run.certificate,
        "history": run.history,
        "checks": found.checks,
        "columns": run.columns,
        "notes": run.notes,
    }
    if found.confusions is not None:
        told |= {
            "format": "setpoint report of classes 1",
            "classes": run.classes,
            "shifts": run.threshold,
            "confusion": {"before": found.confusions.before, "after": found.confusions.after},
            "by_class": found.classes,
        }
    else:
        told |= {
            "threshold": run.threshold,
            "positive": run.positive,
            "sensitivity": found.sensitivity,
            "comparison": found.comparison,
            "groups": found.groups,
            "periods": found.periods,
            "dates": found.dates,
            "days": found.days,
            "costs": run.costs,
        }
    return {key: plain(value) for key, value in told.items()}


def _split(row: dict[str, Any], *, several: bool) -> dict[str, Any]:
    """The entries that a split of two classes has, or of several."""
    two = ("positives", "negatives", "fpr", "recall", "precision", "coverage")
    absent = two if several else ("before", "theirs")
    return {key: value for key, value in row.items() if key not in absent}


def plain(value: Any) -> Any:
    """A value as JSON knows it; NaN and infinity are null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if hasattr(value, "_asdict"):
            return plain(value._asdict())
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)
