"""Columns that say how rows belong together: ids of customers, and dates.

An id names several rows: its name says so, or its values repeat and rows of one value are alike.
How alike they are is measured by the intra-class correlation of scores (or labels): the share of
their variance that lies between values, by the analysis of variance.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.tables.table import Chunk, TableSource
from setpoint.tables.values import PLAIN, FloatColumn, date_format, find_format, numbers

_WORDS = "customer|client|user|patient|account|card|device|person|member|subject|session|household"
_NAMED = re.compile(
    rf"(^|[_ -])({_WORDS})([_ -]|$|id|no|number)|(^|[_ -])(id|uuid|key)$|[a-z]I[Dd]$", re.I
)
_FEWEST_VALUES, _FEWEST_SHARE, _MOST_SHARE = 20, 0.01, 0.9
_UNNAMED_SHARES = (0.1, 0.5)
_ALIKE = 0.1
_DEVIATIONS = 6.0
_MOST_LOOKED_AT = 20  # dates of a column


def related_columns(
    source: TableSource, target: str, without: Collection[str], *, dates: bool = True
) -> Iterator[str]:
    """Sentences on columns of the first rows that look like ids of clusters, or like dates.

    Args:
        source: The table.
        target: A column of numbers: scores, or labels as 0 and 1.
        without: Columns that are used already.
        dates: Whether dates are told; without effect on ids.
    """
    names = [n for n in source.names if n not in {target, *without, *source.unreadable}]
    if not names:
        return
    chunk = next(iter(source.chunks([target, *names])), None)
    if chunk is None or not len(chunk):
        return
    column = chunk.column(target)
    shown, wrong = numbers(column, find_format(column) or PLAIN)
    if wrong is not None or not np.isfinite(shown).any():  # labels of text: which of them it is
        shown = chunk.coded(target)[1].astype(np.float64)
    for name in names:
        if _has_dates(chunk, name):
            order = f"to certify in their order: --time {quote(name)}."
            yield from [f"column {quoted(name)} holds dates; {order}"] if dates else []
        else:
            yield from _cluster_hint(chunk, name, shown)


def _has_dates(chunk: Chunk, name: str) -> bool:
    """Whether the first values are different dates."""
    texts = [text for text in chunk.coded(name)[0] if text is not None][:_MOST_LOOKED_AT]
    known = date_format(texts)
    return len(texts) > 1 and all(known.number(text) is not None for text in texts)


def _cluster_hint(chunk: Chunk, name: str, target: FloatColumn) -> Iterator[str]:
    if _is_measured(chunk.column(name)):
        return
    texts, codes = chunk.coded(name)
    count, share = len(texts), len(texts) / len(chunk)
    if None in texts or count < _FEWEST_VALUES:
        return
    low, high = _UNNAMED_SHARES
    named = bool(_NAMED.search(name)) and _FEWEST_SHARE <= share <= _MOST_SHARE
    alike = intraclass_correlation(target, codes) if low <= share <= high else 0.0
    if named or alike > _ALIKE:
        why = f" that are alike (intra-class correlation {alike:.2f})" if alike > _ALIKE else ""
        yield (
            f"column {quoted(name)} has {count:,} values in {len(chunk):,} rows{why}: if rows of "
            f"one value belong together, add --clusters {quote(name)}."
        )


def _is_measured(column: NDArray[Any]) -> bool:
    """Whether these are amounts, percentages or numbers with decimals, which are no ids."""
    known = find_format(column)
    if known is None:
        return False
    found = numbers(column, known)[0]
    return bool(known.mark) or not np.array_equal(found, np.round(found), equal_nan=True)


def intraclass_correlation(values: FloatColumn, codes: NDArray[np.int64]) -> float:
    """How alike values of one group are, from 0 to 1; 0 if it may be chance.

    Args:
        values: Numbers; NaN is left out.
        codes: The group of each, from 0.

    Examples:
        >>> random = np.random.default_rng(0)
        >>> codes = np.repeat(np.arange(100), 5)
        >>> levels = random.normal(size=100)[codes]
        >>> round(intraclass_correlation(levels + random.normal(size=500), codes), 1)
        0.5
        >>> intraclass_correlation(random.normal(size=500), codes)
        0.0
    """
    known = np.isfinite(values)
    values, codes = values[known], np.unique(codes[known], return_inverse=True)[1]
    sizes = np.bincount(codes)
    between, within = len(sizes) - 1, len(values) - len(sizes)
    if between < 1 or within < 1:
        return 0.0
    means = np.bincount(codes, values) / sizes
    inside = float(((values - means[codes]) ** 2).sum()) / within
    across = float((sizes * (means - values.mean()) ** 2).sum()) / between
    if across <= (1 + _DEVIATIONS * np.sqrt(2 / between + 2 / within)) * inside or across == 0:
        return 0.0
    size = (len(values) - float((sizes.astype(float) ** 2).sum()) / len(values)) / between
    return (across - inside) / (across + (size - 1) * inside)
