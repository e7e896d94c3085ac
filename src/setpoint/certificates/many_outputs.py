"""Several yes-or-no outputs for a row, each with a score and a threshold of its own.

Every output is certified by itself, by its own column, with a part of the risk; the certificates
are then put together into one. Labels of one row may depend on each other in any way; what follows
needs no more than independent rows (or clusters).

**Thresholds that are searched for.** Each of ``k`` outputs has ``delta / k`` of the risk. Hardly
more can be had: ``k`` independent ones err with probability ``1 - (1 - delta / k)^k``, 4.88 % of
5 %. The parts of outputs that turn out to be too rare for any proof must not go to the others
(Tarone 1990): how often one label occurs may tell something about the scores of another, and the
promise would be broken more often than stated. Those that are known to be rare before these rows
are looked at can be left out.

**Thresholds that are given** are one test an output: by Holm's step-down procedure all are tested
with ``delta / k``, those that failed again with ``delta`` divided by their number, until none more
is passed. That is uniformly better than ``delta / k`` for each, whatever labels have to do with
each other. What is displayed of the outputs that passed is then the bound itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.axes.arrays import as_array
from setpoint.axes.outputs import output_names
from setpoint.batch import missing_labels
from setpoint.certificates.goals import CertificateGoal, goal_to_certify
from setpoint.certificates.proofs import INFEASIBLE
from setpoint.rates import Bound

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Certificate

OUTPUT = "output"
"""What the column of names is called in a certificate."""


def one_column(
    scores: Any, labels: Any, names: Sequence[str]
) -> tuple[Any, Any, dict[str, NDArray[Any]]]:
    """Scores and labels ``[n, k]`` as columns of ``k n`` rows, with the name of each row's output.

    Raises:
        ValueError: The shapes differ, or there is not one name for each column.
    """
    check_shapes(scores, labels, names)
    groups = np.repeat(np.array(list(names), object), len(scores))
    return _columns(scores), None if labels is None else _columns(labels), {OUTPUT: groups}


def check_shapes(scores: Any, labels: Any, names: Sequence[str]) -> None:
    """Raise a ValueError unless there is a column of scores and of labels for each name."""
    shape = tuple(np.shape(scores))
    if len(shape) != 2 or shape[1] != len(names):
        raise ValueError(
            f"outputs= has {len(names)} names, so scores are [n, {len(names)}], a column for each "
            f"of them; got the shape {shape}."
        )
    if labels is not None and tuple(np.shape(labels)) != shape:
        raise ValueError(
            f"labels must have the shape of the scores, {shape}, NaN or -1 where a label is "
            f"missing; got the shape {tuple(np.shape(labels))}."
        )


def _columns(values: Any) -> Any:
    """Values ``[n, k]`` column after column."""
    if hasattr(values, "detach"):
        return values.detach().T.reshape(-1)
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    return array.T.reshape(-1)


def goals_of_outputs(goal: Any, names: Sequence[str]) -> tuple[dict[str, CertificateGoal], str]:
    """The goal of each output, and a text for all: one goal for every output, or ``{name: goal}``.

    Raises:
        ValueError: A name is unknown or has no goal, or one of several goals has an objective.
    """
    if not isinstance(goal, Mapping):
        wanted = goal_to_certify(goal)
        return dict.fromkeys(names, wanted), wanted.text
    strange = set(goal) ^ set(names)
    if strange:
        raise ValueError(
            f"The goals are for {', '.join(map(repr, goal)):.200}, the outputs are "
            f"{', '.join(map(repr, names)):.200}: give each output one goal."
        )
    goals = {name: goal_to_certify(goal[name]) for name in names}
    odd = next((name for name in names if goals[name].objective is not None), None)
    if odd is not None:
        raise ValueError(
            f"The goal of {odd!r} has an objective; goals by output are bounds, such as "
            "'fpr <= 0.01'."
        )
    bounds = [
        Bound(b.expression.on(**{OUTPUT: name}), b.sense, b.level)
        for name in names
        for b in goals[name].bounds
    ]
    return goals, " and ".join(map(str, bounds))


def certify_outputs(
    scores: Any,
    labels: Any,
    goal: Any,
    outputs: Sequence[str],
    delta: float,
    prove: Callable[[str, CertificateGoal, Any, Any, float], Certificate],
    step_down: bool,
) -> Certificate:
    """One certificate of several outputs.

    Args:
        scores: ``[n, k]``.
        labels: ``[n, k]``, or None.
        goal: Of every output, or ``{name: goal}``.
        outputs: Their names.
        delta: The probability with which any of the promises may be false.
        prove: Name, goal, scores, labels and risk of one output give its certificate.
        step_down: Whether Holm's procedure is used: thresholds are given.
    """
    names = output_names(outputs)
    columns = dict(zip(names, _each_column(scores, labels, names), strict=True))
    goals, text = goals_of_outputs(goal, names)
    labelled = [name for name in names if _has_labels(columns[name][1])]
    waiting = labelled or list(names)
    made: dict[str, Certificate] = {}
    failed: dict[str, Certificate] = {}
    while waiting:
        risk = delta / (len(waiting) + len(names) - len(labelled))
        failed = {name: prove(name, goals[name], *columns[name], risk) for name in waiting}
        passed = {name: found for name, found in failed.items() if found.certified}
        made |= passed
        failed = {name: found for name, found in failed.items() if name not in passed}
        waiting = list(failed) if step_down and passed else []
    if step_down:
        made = {name: _at_its_bounds(found, goals[name]) for name, found in made.items()}
    return _together({name: made[name] for name in names if name in made}, failed, names, text)


def _at_its_bounds(certificate: Certificate, goal: CertificateGoal) -> Certificate:
    """The same with the bounds themselves displayed as proved."""
    pairs = zip(certificate.claims, goal.bounds, strict=True)
    claims = tuple(replace(claim, proved=bound.level) for claim, bound in pairs)
    return replace(certificate, claims=claims)


def _together(
    made: dict[str, Certificate],
    failed: dict[str, Certificate],
    names: tuple[str, ...],
    text: str,
) -> Certificate:
    """The certificates of outputs as one; those that failed leave a note."""
    shown = made or failed
    largest = max(shown.values(), key=lambda each: each.points[0].examples)
    infeasible = next((c.status for c in failed.values() if c.status == INFEASIBLE), None)
    lost = [repr(name) for name in names if name not in made]
    notes = dict.fromkeys(names, ("No row has a label: all are NaN or -1.",)) | {
        name: found.notes for name, found in (failed | made).items()
    }
    caveats = _named({name: found.caveats for name, found in made.items()})
    if made and lost:
        without = f"{plural(len(lost), 'output')} of {len(names)} without a threshold"
        caveats = (*caveats, f"{without}: {', '.join(lost)}")
    marks = "".join(found.fingerprint for found in (made | failed).values())
    return replace(
        largest,
        goal=text,
        status=largest.status if made else infeasible or largest.status,
        column=OUTPUT,
        points=tuple(replace(found.points[0], group=name) for name, found in shown.items()),
        claims=tuple(claim for found in shown.values() for claim in found.claims),
        objective=tuple(each for found in shown.values() for each in found.objective),
        notes=_named(dict(sorted(notes.items(), key=lambda item: item[0] in made))),
        advice=tuple(dict.fromkeys(text for found in shown.values() for text in found.advice)),
        caveats=caveats,
        fingerprint=hashlib.sha256(marks.encode()).hexdigest()[:16],
        outputs=names,
    )


def _named(texts: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Sentences with the outputs that they are about."""
    found: dict[str, list[str]] = {}
    for name, own in texts.items():
        for text in own:
            found.setdefault(text, []).append(repr(name))
    return tuple(f"{', '.join(who)}: {text}" for text, who in found.items())


def _has_labels(labels: Any) -> bool:
    """Whether any row has a label of an output."""
    missing = None if labels is None else missing_labels(as_array(labels, "labels"))
    return missing is None or not bool(np.asarray(missing).all())


def _each_column(scores: Any, labels: Any, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Scores and labels of each output."""
    check_shapes(scores, labels, names)
    arrays = [x if x is None or hasattr(x, "detach") else np.asarray(x) for x in (scores, labels)]
    for k in range(len(names)):
        column, known = (None if x is None else x[:, k] for x in arrays)
        yield column, known


def certified_columns(
    certificate: Certificate, scores: Any, labels: Any, groups: Any = None, clusters: Any = None
) -> tuple[Any, Any, dict[str, NDArray[Any]], Any]:
    """New rows ``[n, k]`` in one column, of the outputs that have a threshold.

    Returns:
        Scores and labels, the columns of groups with the outputs' names among them, and clusters:
        the rows of a cluster in one output.
    """
    check_columns(scores, certificate.outputs)
    known = [i for i, name in enumerate(certificate.outputs) if name in certificate.thresholds]
    names = [certificate.outputs[i] for i in known]
    parts = [
        None if x is None else x if hasattr(x, "detach") else np.asarray(x)
        for x in (scores, labels)
    ]
    chosen = [None if x is None else x[:, known] for x in parts]
    column, positive, columns = one_column(chosen[0], chosen[1], names)
    others = groups if isinstance(groups, Mapping) else {} if groups is None else {"group": groups}
    columns |= {name: np.tile(as_array(given, name), len(known)) for name, given in others.items()}
    if clusters is not None:
        from setpoint.certificates.clusters import cluster_codes

        codes = cluster_codes(clusters)
        ends = (codes.max(initial=0) + 1) * np.arange(len(known))
        clusters = np.concatenate([codes + end for end in ends])
    return column, positive, columns, clusters


def check_columns(scores: Any, names: Sequence[str]) -> None:
    """Scores of several outputs have a column for each."""
    shape = tuple(np.shape(scores))
    if len(shape) != 2 or shape[1] != len(names):
        raise ValueError(
            f"The certificate is about {len(names)} outputs: scores are [n, {len(names)}], in the "
            f"order {', '.join(map(repr, names)):.200}; got the shape {shape}."
        )


def each_column(decide: Mapping[str, Any], scores: Any, names: Sequence[str]) -> Any:
    """Decisions ``[n, k]``: by each output's own function, and never where one has none."""
    check_columns(scores, names)
    array = scores if hasattr(scores, "detach") else as_array(scores, "scores")
    decided = array != array  # nothing is accepted yet: booleans, where the scores are
    for column, name in enumerate(names):
        if name in decide:
            decided[:, column] = decide[name](array[:, column])
    return decided
