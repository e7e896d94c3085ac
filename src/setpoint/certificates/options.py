"""The options of :func:`setpoint.certify` as one record, and which of them go together.

What does not go together is one table, :data:`APART`, for Python and for the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NoReturn

from setpoint._checks import share, whole

if TYPE_CHECKING:
    from setpoint.certificates.goals import CertificateGoal
    from setpoint.certificates.sample import Prevalence

ROWS_ONLY = ("groups", "thresholds", "prevalence", "unlabelled", "clusters", "old_threshold")
PER_PERIOD = "alerts per period"
"""What a goal such as ``alerts <= 200 per day`` is called in :data:`APART`."""
APART: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "plan",
        (*ROWS_ONLY, "times", "amounts", "ids", "outputs", "candidates", "guarantee", PER_PERIOD),
        "labels of a plan are proved with confidence= alone",
    ),
    (
        PER_PERIOD,
        (*ROWS_ONLY, "amounts", "ids", "outputs"),
        "periods are counted, not rows: leave it out",
    ),
    (
        "outputs",
        ("prevalence", "unlabelled", "old_threshold", "amounts", "ids"),
        "certify each output by itself for it, with the risk 1 - confidence divided by the number "
        "of outputs",
    ),
    (
        "ids",
        ("thresholds", "unlabelled"),
        "lots are drawn where a threshold is searched for: leave one of them out",
    ),
    ("unlabelled", ("prevalence",), "both say what the share of positives will be: give one"),
    (
        "unlabelled",
        ("clusters",),
        "the rows to come belong to clusters, too, and are fewer draws than they look: declare "
        "the share of positives instead, prevalence=(low, high)",
    ),
    (
        "amounts",
        ("groups", "prevalence", "unlabelled"),
        "a cost with amounts has one threshold, and the mix of classes of these rows: certify "
        "each group by itself, with the risk divided by their number",
    ),
    ("mean", ("thresholds",), 'given thresholds are tested, not found: use guarantee="pac"'),
    (
        "mean",
        ("candidates",),
        'an average does not survive choosing among several models: use guarantee="pac", or '
        "certify on rows that took no part in the choice",
    ),
)
"""An option, those that do not go with it, and why or what to do instead."""


def why_apart(given: Collection[str], spelled: Callable[[str], str] = "{}=".format) -> str:
    """A sentence about the first options in ``given`` that do not go together; empty if all do.

    Args:
        given: Names of options that were given, ``"mean"`` for that guarantee and
            :data:`PER_PERIOD` for such a goal.
        spelled: How an option is written.

    Examples:
        >>> why_apart({"unlabelled", "prevalence"})[:48]
        'unlabelled= does not go with prevalence=: both s'
    """
    special = {"mean": 'guarantee="mean"', PER_PERIOD: f"a goal of {PER_PERIOD}"}
    for option, others, reason in APART:
        wrong = [other for other in others if other in given]
        if option in given and wrong:
            first, second = (special.get(x) or spelled(x) for x in (option, wrong[0]))
            return f"{first} does not go with {second}: {reason}."
    return ""


@dataclass(frozen=True)
class Options:
    """What :func:`setpoint.certify` is asked for beside rows and goal; see its arguments."""

    confidence: float = 0.95
    candidates: int = 1
    guarantee: str = "pac"
    groups: Any = None
    thresholds: Any = None
    prevalence: Any = None
    unlabelled: Any = None
    clusters: Any = None
    times: Any = None
    accept_drift: bool = False
    old_threshold: float | None = None
    amounts: Any = None
    largest_amount: float | None = None
    weights: Any = None
    plan: Any = None
    outputs: Any = None
    ties: str = "reject"
    ids: Any = None

    @classmethod
    def read(cls, given: Mapping[str, Any], goal: str = "") -> Options:
        """Checked options.

        Args:
            given: By name.
            goal: :data:`PER_PERIOD` for such a goal.

        Raises:
            ValueError: A value is none of those allowed, or two options do not go together.
        """
        made = cls(**given)
        if made.weights is not None:
            refuse_weights()
        if made.guarantee not in ("pac", "mean"):
            raise ValueError(f'guarantee must be "pac" or "mean"; got {made.guarantee!r}.')
        if made.ties not in ("reject", "lot"):
            raise ValueError(f'ties must be "reject" or "lot"; got {made.ties!r:.40}.')
        if (made.ids is None) == (made.ties == "lot"):
            raise ValueError('ties="lot" draws a lot from the id of each row: ids= goes with it.')
        if made.largest_amount is not None and made.amounts is None:
            raise ValueError("largest_amount= is that of amounts=: pass them, or leave it out.")
        if made.plan is not None and not hasattr(made.plan, "in_order"):
            raise TypeError(
                f"plan= is what label_plan returns; got {made.plan!r:.60}. A file of "
                "`setpoint plan` is read by LabelPlan.from_json(text)."
            )
        made = replace(
            made,
            candidates=whole(made.candidates, "candidates", least=1),
            prevalence=_read_prevalence(made.prevalence),
        )
        wrong = why_apart(made.given | {goal})
        if wrong:
            raise ValueError(wrong)
        return made

    @property
    def given(self) -> set[str]:
        """The names of those that are not at their default, ``"mean"`` for that guarantee."""
        plain = (str, int, float)
        names = {
            field.name
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
            and not (isinstance(value, plain) and value == field.default)
        }
        return names | ({"mean"} if self.guarantee == "mean" else set())

    @property
    def delta(self) -> float:
        """The probability with which a certificate of one of the candidates may be wrong."""
        return risk_of(self.confidence) / self.candidates

    @property
    def recorded(self) -> dict[str, Any]:
        """What a certificate says about how it was asked for."""
        return {
            "confidence": float(self.confidence),
            "guarantee": self.guarantee,
            "candidates": self.candidates,
            "given_thresholds": self.thresholds is not None,
            "old_threshold": self.old_threshold,
        }

    def with_threshold(self, name: str) -> Options:
        """The options of one output, whose threshold is given."""
        if not isinstance(self.thresholds, Mapping):
            raise TypeError("There is one threshold for each output: {name: threshold}.")
        if name not in self.thresholds:
            raise ValueError(f"No threshold for output = {name!r}: add it.")
        return replace(self, thresholds=self.thresholds[name])

    def check_prevalence(self, labels: Any, goal: CertificateGoal) -> None:
        """A declared share of positives weighs the two classes of everyone."""
        if self.prevalence is None and self.unlabelled is None:
            return
        if labels is None:
            raise ValueError("prevalence= weighs the two classes anew and needs labels.")
        if goal.wheres:
            raise ValueError(
                "prevalence= is that of everyone; slices have their own. Certify each slice by "
                "itself with its prevalence."
            )


def risk_of(confidence: float) -> float:
    """``1 - confidence``: exactly 0.05 for 0.95, in spite of rounding."""
    risk = round(1 - share(confidence, "confidence", ends=False), 12)
    if risk <= 0:
        raise ValueError(f"confidence must leave some doubt, 1e-12 at least; got {confidence!r}.")
    return risk


def _read_prevalence(given: Any) -> Prevalence:
    """A share of positives, or the lowest and the highest that it may be.

    Raises:
        TypeError: It is neither a number nor a pair.
        ValueError: A share is not between 0 and 1, or the pair is not in order.
    """
    if given is None:
        return None
    if not isinstance(given, (tuple, list)):
        return float(share(given, "prevalence", ends=False))
    if len(given) != 2:
        raise ValueError(
            f"prevalence is a share, or the lowest and the highest; got {given!r:.60}."
        )
    low, high = (float(share(end, "prevalence", ends=False)) for end in given)
    if low > high:
        raise ValueError(f"prevalence goes from low to high; got ({low:g}, {high:g}).")
    return low, high


def refuse_weights() -> NoReturn:
    """Weighted counts do not follow the binomial law."""
    raise ValueError(
        "A certificate counts independent examples, and weighted counts do not follow the "
        "binomial law that it rests on. If weights undo a resampling, certify the sample as it "
        "was drawn: fpr, recall, fnr and tnr do not depend on the share of positives, and for "
        "precision and the like pass prevalence=."
    )
