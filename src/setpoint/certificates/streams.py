"""Certificates of tables that do not fit into memory: a folder of parquet files with 10^9 rows.

A proof by order statistics asks for a few scores of known rank and for counts above them; a walk
down the ranking asks for scores in order. Both are answered by passes over the files
(:mod:`setpoint.certificates.score_counts`), three to five for a bound such as ``fpr <= 0.001``, so
that the certificate is the one that ``certify`` makes of the same rows in memory. Files may be read
by the workers of a Ray cluster; what they send back is counts and a few scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.certificate import Certificate
from setpoint.certificates.certification import certify_sample
from setpoint.certificates.copies import keys_of
from setpoint.certificates.goals import (
    ACCEPTED,
    REJECTED,
    CertificateGoal,
    goal_to_certify,
    inequalities,
)
from setpoint.certificates.proofs import ThresholdRule
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    CalibrationSample,
    CannotPromise,
    Subset,
)
from setpoint.certificates.score_counts import Query, ScoreCounts, StreamedScores
from setpoint.certificates.selection import prefers_low
from setpoint.rates import Where
from setpoint.tables import NO_ROWS, Chunk, LabelNames, TableError, need_column, open_table
from setpoint.tables.arrow_file import ArrowSource
from setpoint.tables.labels import LabelCount
from setpoint.tables.scores import score_column, score_format, unlabelled_note
from setpoint.tables.values import PLAIN, Codes, NumberFormat

if TYPE_CHECKING:
    from setpoint.distributed import Pool

FEWEST_TO_STREAM = 2**21
"""Tables with fewer rows are read into memory."""
_MERGED = 16  # answers about chunks that are put together at a time


@dataclass(frozen=True)
class ScoreColumns:
    """Which columns of a table to read, and what their values mean."""

    score: str
    label: str | None = None
    group: str | None = None
    known: NumberFormat = PLAIN
    classes: LabelNames | None = None
    groups: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The columns that there are."""
        return [name for name in (self.score, self.label, self.group) if name is not None]

    @property
    def categories(self) -> int:
        """How many kinds of rows there are: two classes of each group."""
        return (1 if self.label is None else 2) * max(len(self.groups), 1)

    def read(self, chunk: Any) -> tuple[NDArray[np.float64], Codes]:
        """Scores and categories of the rows that have a label."""
        chunk = chunk if self.label is None else chunk.with_value(self.label)
        scores = score_column(chunk, self.score, self.known)
        codes = np.zeros(len(scores), np.int64)
        if self.group is not None:
            values, places = chunk.coded(self.group)
            codes = np.array([self.groups.index(str(v)) for v in values], np.int64)[places]
        if self.label is not None and self.classes is not None:
            codes = 2 * codes + self.classes.encode(chunk, self.label)
        return scores, codes


@dataclass
class LabelSurvey:
    """What the first pass finds: labels, groups, and rows without a label."""

    labels: LabelCount | None
    groups: dict[str, None]
    rows: int = 0
    unlabelled: int = 0
    first: int = 0
    """The number of the first row without a label."""

    def count(self, chunk: Chunk, columns: ScoreColumns) -> None:
        """Count the rows of a chunk."""
        labelled = chunk
        if columns.label is not None and self.labels is not None:
            absent = chunk.absent(columns.label)
            if absent.any() and not self.unlabelled:
                self.first = self.rows + int(np.argmax(absent)) + 1
            self.unlabelled += int(absent.sum())
            labelled = chunk.with_value(columns.label)
            self.labels.update(labelled)
        if columns.group is not None and len(labelled):
            self.groups |= dict.fromkeys(labelled.texts(columns.group).tolist())
        self.rows += len(chunk)

    def add(self, other: LabelSurvey) -> None:
        """Count the rows of the next part."""
        if self.labels is not None and other.labels is not None:
            self.labels.add(other.labels)
        self.groups |= other.groups
        if other.unlabelled and not self.unlabelled:
            self.first = self.rows + other.first
        self.rows += other.rows
        self.unlabelled += other.unlabelled


def survey_labels(part: ArrowSource, columns: ScoreColumns) -> LabelSurvey:
    """The labels and groups of one file."""
    labels = None if columns.label is None else LabelCount(part.path, columns.label)
    found = LabelSurvey(labels, {})
    for chunk in part.chunks(name for name in columns.names if name != columns.score):
        found.count(chunk, columns)
    return found


def survey_unlabelled(part: ArrowSource, columns: ScoreColumns) -> dict[str, tuple[int, float]]:
    """The number and the highest score of the rows of one file without a label, by group."""
    found: dict[str, tuple[int, float]] = {}
    for chunk in part.chunks(columns.names):
        absent = np.flatnonzero(chunk.absent(str(columns.label)))
        if len(absent):
            rest = chunk.select(absent.tolist())
            scores = score_column(rest, columns.score, columns.known)
            names = [""] * len(rest) if columns.group is None else rest.texts(columns.group)
            for group in dict.fromkeys(names):
                own = scores[np.asarray(names) == group]
                known, highest = found.get(group, (0, -np.inf))
                found[group] = known + len(own), max(highest, float(own.max()))
    return found


def answer(part: ArrowSource, columns: ScoreColumns, query: Query) -> Any:
    """The answer to a query about one file, in bounded memory."""
    nothing = query.of(np.empty(0, np.uint64), np.empty(0, np.int64), columns.categories)
    answers = [nothing]
    for chunk in part.chunks(columns.names):
        scores, codes = columns.read(chunk)
        answers.append(query.of(keys_of(scores), codes, columns.categories))
        answers = [query.merged(answers)] if len(answers) >= _MERGED else answers
    return query.merged(answers)


class StreamedSample(CalibrationSample):
    """The rows of a table that can only be asked about.

    Args:
        counts: Answers.
        columns: What the categories are.
        fingerprint: Of the labels.
        unlabelled: The number and the highest score of rows without a label, by group ("" if
            there are no groups).
        prevalence: See :class:`CalibrationSample`.
    """

    def __init__(
        self,
        counts: ScoreCounts,
        columns: ScoreColumns,
        fingerprint: str,
        unlabelled: Mapping[str, tuple[int, float]],
        prevalence: Any,
    ) -> None:
        none = np.empty(0)
        labels = None if columns.label is None else none > 0
        super().__init__(none, labels, {}, "float64", prevalence)
        self._counts, self._columns = counts, columns
        self._fingerprint, self._unlabelled = fingerprint, unlabelled

    @property
    def examples(self) -> int:
        """See :class:`CalibrationSample`."""
        return int(self._counts.sizes.sum())

    @property
    def fingerprint(self) -> str:
        """See :class:`CalibrationSample`."""
        return self._fingerprint

    @property
    def wheres(self) -> tuple[Where, ...]:
        """See :class:`CalibrationSample`."""
        return ((), *(((str(self._columns.group), group),) for group in self.groups))

    def unlabelled(self, where: Where = ()) -> tuple[int, float]:
        """See :class:`CalibrationSample`."""
        named = [str(value) for _, value in where] or list(self._unlabelled)
        found = [self._unlabelled[name] for name in named if name in self._unlabelled]
        return sum(count for count, _ in found), max((score for _, score in found), default=-np.inf)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that there are."""
        return self._columns.groups

    def multiplicities(self, subset: Subset) -> NDArray[np.int64]:
        """See :class:`CalibrationSample`."""
        return self._counts.multiplicities(self._categories(subset))

    def sorted(self, subset: Subset) -> Any:
        """The scores of a subset from low to high, as an array would give them."""
        return StreamedScores(self._counts, self._categories(subset))

    def pairs_in_order(self) -> float:
        """See :class:`CalibrationSample`; scores whose first 16 bits are the same are ties."""
        first = self._counts.first_bits
        high, low = (
            first[list(self._categories(Subset((), kind)))].sum(0)
            for kind in (POSITIVES, NEGATIVES)
        )
        return float(high @ (np.cumsum(low) - low / 2))

    def _categories(self, subset: Subset) -> tuple[int, ...]:
        groups: Sequence[str] = self._columns.groups or ("",)
        wanted = [value for _, value in subset.where]
        kinds = {POSITIVES: [1], NEGATIVES: [0], EVERYONE: [0, 1]}[subset.kind]
        if self._columns.label is None:
            return tuple(i for i, group in enumerate(groups) if group in wanted or not wanted)
        return tuple(
            2 * i + kind
            for i, group in enumerate(groups)
            for kind in kinds
            if group in wanted or not wanted
        )


class StreamedTable:
    """Parquet files with the same columns, read anew for every question.

    Args:
        source: The files.
        columns: The columns to read.
        positive: The positive label, where its name does not tell.
        pool: Where the files are read; None: here, one after the other.

    Attributes:
        notes: What was left out, in sentences.
    """

    def __init__(
        self,
        source: ArrowSource,
        columns: ScoreColumns,
        positive: str | None = None,
        pool: Pool | None = None,
    ) -> None:
        options = ("--score", "--label", "--group")
        for name, option in zip(
            (columns.score, columns.label, columns.group), options, strict=True
        ):
            if name is not None:
                need_column(source, name, option)
        self._source, self._pool = source, pool
        self.notes: list[str] = []
        first = next((chunk for chunk in source.chunks(columns.names) if len(chunk)), None)
        if first is None:
            raise TableError(source.path, NO_ROWS)
        known, told = score_format(source, columns.score)
        self.notes += told
        self.columns = replace(columns, known=known)
        self.unlabelled = 0
        if columns.label is not None or columns.group is not None:
            self._read_labels(positive)

    def _read_labels(self, positive: str | None) -> None:
        columns, every = self.columns, LabelSurvey(None, {})
        if columns.label is not None:
            every.labels = LabelCount(self._source.path, columns.label)
        for found in self._of_parts(survey_labels, columns):
            every.add(found)
        if every.labels is not None and columns.label is not None:
            columns = replace(columns, classes=every.labels.two_classes(positive))
            self.unlabelled = every.unlabelled
            self.notes += unlabelled_note(str(columns.label), every.unlabelled, every.first)
        self.columns = replace(columns, groups=tuple(sorted(every.groups)))

    def _of_parts(self, work: Any, *given: Any) -> Iterator[Any]:
        """What ``work`` finds in each file, in order."""
        if self._pool is None:
            yield from (work(part, *given) for part in self._source.parts())
            return
        tasks = [self._pool.submit(work, part, *given) for part in self._source.parts()]
        for task in tasks:
            yield self._pool.result(task)

    def ask(self, query: Query) -> Any:
        """The answer to a query about all rows."""
        found: Any = None
        for one in self._of_parts(answer, self.columns, query):
            found = one if found is None else query.merged([found, one])
        return found

    def sample(self, prevalence: Any = None) -> StreamedSample:
        """The rows that have a label as a calibration sample."""
        counts = ScoreCounts(self.ask, self.columns.categories)
        known = (self.columns, self._fingerprint(counts), self._without_label())
        return StreamedSample(counts, *known, prevalence)

    def _without_label(self) -> dict[str, tuple[int, float]]:
        """The number and the highest score of the rows without a label, by group."""
        found: dict[str, tuple[int, float]] = {}
        for part in self._of_parts(survey_unlabelled, self.columns) if self.unlabelled else ():
            for group, (count, score) in part.items():
                known, highest = found.get(group, (0, -np.inf))
                found[group] = known + count, max(highest, score)
        return found

    def _fingerprint(self, counts: ScoreCounts) -> str:
        """That of :class:`CalibrationSample`, read here and in order."""
        digest = hashlib.sha256(f"{int(counts.sizes.sum())} ".encode())
        columns, left = self.columns, np.empty(0, bool)
        for chunk in self._source.chunks([columns.label or columns.score]):
            if columns.label is None or columns.classes is None:
                digest.update(score_column(chunk, columns.score, columns.known).tobytes())
                continue
            own = columns.classes.encode(chunk.with_value(columns.label), columns.label)
            left = np.concatenate([left, own == 1])
            whole = len(left) // 8 * 8
            digest.update(np.packbits(left[:whole]).tobytes())
            left = left[whole:]
        digest.update(np.packbits(left).tobytes())
        return digest.hexdigest()[:16]


@contextmanager
def workers_of(ray: bool) -> Iterator[Pool | None]:
    """The workers of a Ray cluster; a file whose worker is killed is read again by another."""
    if not ray:
        yield None
        return
    from setpoint.distributed import check_processes, open_pool

    with open_pool(check_processes("ray"), retries=3) as pool:
        yield pool


def can_stream(goal: CertificateGoal, column: str | None, prevalence: Any) -> bool:
    """Whether a goal is proved by order statistics and walks alone.

    Args:
        goal: What is asked for.
        column: The column of groups, if one is read.
        prevalence: What was declared of it.
    """
    bounds = inequalities(goal.bounds, prevalence)
    kinds = (POSITIVES, NEGATIVES, EVERYONE, ACCEPTED, REJECTED)
    for each in bounds:
        if each.share is None or each.share.subset.kind not in kinds:
            return False
        if {name for name, _ in each.share.subset.where} - {column}:
            return False
    ends = [each.caps for each in bounds]
    low, high = (ThresholdRule(0.0) if side in ends else None for side in (True, False))
    return prefers_low(goal, low, high) is not None


def certify_table(
    table: Any,
    goal: Any,
    *,
    score: str,
    label: str | None = None,
    group: str | None = None,
    positive: str | None = None,
    confidence: float = 0.95,
    candidates: int = 1,
    guarantee: Literal["pac", "mean"] = "pac",
    prevalence: Any = None,
    ray: bool = False,
) -> Certificate:
    """The certificate of the scores in parquet files, in bounded memory.

    It is the one that :func:`certify` makes of the same rows in memory. It takes bounds on fpr,
    tnr, recall, fnr, coverage, precision and npv, of everyone or of each group.

    Args:
        table: A parquet file, a folder of them (with the same columns), or a
            ``pyarrow.dataset.Dataset`` of parquet files.
        goal: See :func:`certify`.
        score: The column of scores.
        label: The column of labels; rows without one are left out.
        group: A column of groups, for one threshold each or for goals about slices.
        positive: The positive label, where its name does not tell.
        confidence: See :func:`certify`, as for the following.
        candidates: Among how many models this one was chosen on these rows.
        guarantee: ``"pac"`` or ``"mean"``.
        prevalence: The share of positives to come.
        ray: Whether the workers of a Ray cluster read the files (extra ``ray``).

    Raises:
        TableError: A file cannot be read, columns differ between files, a score is not finite.
        CannotPromise: The goal needs all scores in memory.

    Examples:
        >>> import pyarrow, pyarrow.parquet, tempfile
        >>> scores = pyarrow.table({"s": np.arange(1000.0), "y": np.arange(1000) % 2})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pyarrow.parquet.write_table(scores, folder + "/part.parquet")
        ...     certify_table(folder, "fpr <= 0.1", score="s", label="y").threshold
        922.5
    """
    source = _open_dataset(table) if hasattr(table, "get_fragments") else open_table(Path(table))
    wanted = goal_to_certify(goal)
    if not isinstance(source, ArrowSource) or source.feather:
        raise TableError(source.path, "only parquet files are read by streaming.")
    if not can_stream(wanted, group, prevalence):
        raise CannotPromise(
            f"`{wanted.text}` needs all scores in memory. Certify a random sample of the rows that "
            "fits, or a goal about fpr, tnr, recall, fnr, coverage, precision or npv."
        )
    with workers_of(ray) as pool:
        rows = StreamedTable(source, ScoreColumns(score, label, group), positive, pool)
        sample = rows.sample(prevalence)
        options = {"confidence": confidence, "candidates": candidates, "guarantee": guarantee}
        return certify_streamed(wanted, sample, group, **options)


def certify_streamed(
    wanted: CertificateGoal, sample: StreamedSample, group: str | None, **options: Any
) -> Certificate:
    """The certificate of a streamed sample; ``options`` are those of :func:`certify`."""
    groups = None if group is None else {group: np.array(sample.groups)}
    return certify_sample(wanted, sample, groups, **options)


def _open_dataset(dataset: Any) -> ArrowSource:
    if getattr(dataset.format, "default_extname", "") != "parquet" or not dataset.files:
        raise TableError(Path("dataset"), "only datasets of parquet files are read by streaming.")
    opener = dataset.filesystem.open_input_file
    files = [(Path(file), partial(opener, file)) for file in dataset.files]
    return ArrowSource(Path(dataset.files[0]).parent, files)
