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
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime, timezone
from functools import cache
from importlib.resources import files
from itertools import count
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from setpoint._version import __version__
from setpoint.certificates import Certificate
from setpoint.certificates.decisions import exceeds
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
    """
    found, numbers = Findings(run), count(1)

    def plots(section: str) -> list[tuple[int, Plot]]:
        """The plots of a section, numbered in the order of the page."""
        return [(next(numbers), plot) for plot in PLOTS[section](found)]

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


def report(
    scores: Any,
    labels: Any,
    certificate: Certificate,
    *,
    groups: Any = None,
    label: str = "label",
    positive: str = "1",
    negative: str = "",
    action: str = "flag",
    notes: Sequence[str] = (),
    times: Any = None,
    by: str | None = None,
    costs: tuple[float, float] | None = None,
    checks: Sequence[Mapping[str, Any]] = (),
    test: tuple[Any, ...] | None = None,
    script: bool = True,
    ids: Any = None,
) -> str:
    """The page of a certificate on scored rows, as one HTML document: no training run is needed.

    Rows that give the certificate's own counts are taken for the calibration rows, others for new
    ones, which judge it.

    Args:
        scores: One score per row.
        labels: 0 or 1 for each.
        certificate: From :func:`setpoint.certify`, certified or not.
        groups: The group of each row, or a dict with one column of groups by name.
        label: The name of the label, for the page.
        positive: What the positive class is called, ``"fraud"``.
        negative: What the others are called, in the plural, ``"legitimate payments"``.
        action: What is done above the threshold, as a verb, ``"block"``.
        notes: What was done to the data, in sentences.
        times: When each row came, as ISO dates or numbers: rates are shown by period, and alerts
            by day.
        by: The length of a period: ``"hour"``, ``"day"``, ``"week"`` or ``"month"``; by default
            the shortest of days, weeks and months that makes a readable table.
        costs: What a miss and a false alarm cost: shown for every threshold.
        checks: What ``setpoint check`` has noted since, one dict each.
        test: Scores, labels, groups, times and ids (if any) of other rows, which judge the
            certificate: the page is about them.
        script: Whether the threshold can be moved on the page, by a script inside it.
        ids: The id of each row, if ties are broken by lot.

    Raises:
        ValueError: A threshold per group without ``groups``, or labels that do not fit.

    Examples:
        >>> import numpy as np
        >>> from setpoint import certify
        >>> y = np.arange(1000) % 4 == 0
        >>> s = np.random.default_rng(0).normal(size=1000) + 3 * y
        >>> html = report(s, y, certify(s, y, "fpr <= 0.05"), negative="payments", action="stop")
        >>> html.split("<title>")[1].split("</title>")[0]
        'At most 1 in 20 payments is stopped: proved with 95 % confidence'
    """
    column, values = _group_column(groups, certificate.column)
    threshold: Any = None
    if certificate.certified and certificate.column is None:
        threshold = certificate.threshold
    elif certificate.certified:
        threshold = certificate.thresholds
    if certificate.lots:
        scores = certificate.resolve_ties(scores, ids, values)
        test = test and (certificate.resolve_ties(test[0], test[4], test[2]), *test[1:])
    name = "calibration" if _is_calibration(scores, labels, certificate) else "test"
    splits = {name: (scores, labels, values)}
    if test is not None:
        splits = {"calibration": (scores, labels, values), "test": test[:3]}
        times = test[3] if len(test) > 3 else None
    run = RunResult(
        certificate.goal,
        splits,
        threshold,
        positive=positive,
        negative=negative,
        action=action,
        certificate=json.loads(certificate.to_json()),
        label=label,
        group=column,
        versions={"setpoint": __version__},
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        notes=notes,
        times=times,
        by=by,
        costs=costs,
        checks=checks,
    )
    return page(run, script=script)


def _group_column(groups: Any, needed: str | None) -> tuple[str, Any]:
    """The column of groups by its name; ValueError if it is not the one that is needed."""
    column, values = needed or "group", groups
    if isinstance(groups, Mapping):
        if len(groups) != 1:
            given = ", ".join(groups) or "none"
            raise ValueError(f"groups is one column by its name; got {given}.")
        ((column, values),) = groups.items()
    if needed is not None and (values is None or column != needed):
        raise ValueError(
            f"There is one threshold for each {needed}: pass groups={{{needed!r}: ...}}."
        )
    return column, values


def _is_calibration(scores: Any, labels: Any, certificate: Certificate) -> bool:
    """Whether the rows give the counts of the certificate, so that they are its own."""
    points = certificate.points
    same = sum(point.examples for point in points) == len(np.asarray(scores))
    positives = sum(point.positives or 0 for point in points)
    if not same or positives != int((np.asarray(labels) == 1).sum()):
        return False
    if not certificate.certified or certificate.column is not None:
        return True
    above = exceeds(scores, certificate.threshold, certificate.dtype)
    return int(np.asarray(above).sum()) == points[0].alerts


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
    return {key: _plain(value) for key, value in told.items()}


def _split(row: dict[str, Any], *, several: bool) -> dict[str, Any]:
    """The entries that a split of two classes has, or of several."""
    two = ("positives", "negatives", "fpr", "recall", "precision", "coverage")
    absent = two if several else ("before", "theirs")
    return {key: value for key, value in row.items() if key not in absent}


def _plain(value: Any) -> Any:
    """A value as JSON knows it; NaN and infinity are null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if hasattr(value, "_asdict"):
            return _plain(value._asdict())
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)
