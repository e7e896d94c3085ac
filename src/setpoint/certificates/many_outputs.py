"""Several yes-or-no outputs for a row, each with a score and a threshold of its own.

Rows ``[n, k]`` are read as one long column with the output's name as the group, so that an output
is proved, displayed, checked and decided like a group. Labels of one row may depend on each other
in any way; what follows needs no more than independent rows.

**Thresholds that are searched for.** Each of ``k`` outputs has ``delta / k`` of the risk. Hardly
more can be had: ``k`` independent ones err with probability ``1 - (1 - delta / k)^k``, 4.88 % of
5 %. The parts of outputs that turn out to be too rare for any proof must not go to the others
(Tarone 1990): how often one label occurs may tell something about the scores of another, and the
promise would be broken more often than stated. Those that are known to be rare before these rows
are looked at can be left out.

**Thresholds that are given** are one test an output: by Holm's step-down procedure the smallest
p-value is compared with ``delta / k``, the next with ``delta / (k - 1)``, until one fails. That is
uniformly better than ``delta / k`` for each, whatever labels have to do with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.axes.arrays import as_array
from setpoint.axes.outputs import output_names
from setpoint.certificates.goals import CertificateGoal, goal_to_certify
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
    shape, known = tuple(np.shape(scores)), output_names(names)
    if len(shape) != 2 or shape[1] != len(known):
        raise ValueError(
            f"outputs= has {len(known)} names, so scores are [n, {len(known)}], a column for each "
            f"of them; got the shape {shape}."
        )
    if labels is not None and tuple(np.shape(labels)) != shape:
        raise ValueError(
            f"labels must have the shape of the scores, {shape}, NaN or -1 where a label is "
            f"missing; got the shape {tuple(np.shape(labels))}."
        )
    groups = np.repeat(np.array(known, object), shape[0])
    return _columns(scores), None if labels is None else _columns(labels), {OUTPUT: groups}


def _columns(values: Any) -> Any:
    """Values ``[n, k]`` column after column."""
    if hasattr(values, "detach"):
        return values.detach().T.reshape(-1)
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    return array.T.reshape(-1)


def goal_of_outputs(goal: Any, names: Sequence[str]) -> CertificateGoal:
    """One goal for every output, or ``{name: goal}``.

    Raises:
        ValueError: A name is unknown or has no goal, or a goal names slices or has an objective.
    """
    if not isinstance(goal, Mapping):
        return _for_each(goal_to_certify(goal))
    strange = set(goal) ^ set(names)
    if strange:
        raise ValueError(
            f"The goals are for {', '.join(map(repr, goal)):.200}, the outputs are "
            f"{', '.join(map(repr, names)):.200}: give each output one goal."
        )
    bounds: list[Bound] = []
    for name in names:
        found = _for_each(goal_to_certify(goal[name]))
        if found.objective is not None:
            raise ValueError(
                f"The goal of {name!r} has an objective; goals by output are bounds, such as "
                "'fpr <= 0.01'."
            )
        on = {OUTPUT: name}
        bounds += [Bound(b.expression.on(**on), b.sense, b.level) for b in found.bounds]
    return CertificateGoal(tuple(bounds), None, True, True, " and ".join(map(str, bounds)))


def _for_each(goal: CertificateGoal) -> CertificateGoal:
    if goal.wheres:
        raise ValueError(f"`{goal.text}` names slices: goals of several outputs hold for all rows.")
    return CertificateGoal(goal.bounds, goal.objective, goal.maximize, True, goal.text)


def holm(p_values: Mapping[Any, float], delta: float) -> set[Any]:
    """Which hypotheses are rejected, with a probability of any wrong rejection of ``delta``.

    Examples:
        >>> sorted(holm({"a": 0.01, "b": 0.02, "c": 0.3}, 0.05))  # of b, Bonferroni asks 0.0167
        ['a', 'b']
    """
    rejected: set[Any] = set()
    for name in sorted(p_values, key=p_values.__getitem__):
        if p_values[name] > delta / (len(p_values) - len(rejected)):
            break
        rejected.add(name)
    return rejected


def without_threshold(certificate: Certificate, names: Sequence[str]) -> tuple[str, ...]:
    """A caveat that names the outputs of which nothing is proved, if others have a threshold."""
    lost = [repr(name) for name in names if name not in {p.group for p in certificate.points}]
    if not certificate.certified or not lost:
        return ()
    return (
        f"{plural(len(lost), 'output')} of {len(names)} without a threshold: {', '.join(lost)}",
    )


def certified_columns(
    certificate: Certificate, scores: Any, labels: Any
) -> tuple[Any, Any, dict[str, NDArray[Any]]]:
    """New scores and labels ``[n, k]`` of the outputs that have a threshold, in one column."""
    check_columns(scores, certificate.outputs)
    known = [i for i, name in enumerate(certificate.outputs) if name in certificate.thresholds]
    names = [certificate.outputs[i] for i in known]
    parts = [
        None if x is None else x if hasattr(x, "detach") else np.asarray(x)
        for x in (scores, labels)
    ]
    chosen = [None if x is None else x[:, known] for x in parts]
    return one_column(chosen[0], chosen[1], names)


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
