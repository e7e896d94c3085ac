"""Agreement of decisions with the truth beyond chance: Matthews' correlation and Cohen's kappa.

With the shares ``a`` of the positives and ``b`` of the negatives that are accepted, the prior ``p``
and the accepted share ``q = p a + (1 - p) b`` of everyone,

    mcc   = sqrt(p (1 - p)) (a - b) / sqrt(q (1 - q)),
    kappa = 2 p (1 - p) (a - b) / (q (1 - p) + (1 - q) p).

Both rise with ``a`` and fall with ``b``. In the odds ``o = p / (1 - p)`` they are ``a - b`` over

    sqrt(a (1 - a) o + b (1 - b) / o + a (1 - b) + b (1 - a)),
    ((1 - a) o + b / o + 1 + a - b) / 2,

each with a single minimum, so their size is least at an end of any range of priors, and greatest
at ``o^2 = b (1 - b) / (a (1 - a))`` and ``o^2 = b / (1 - a)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.rates.counts import Array, divide, weighted_sum
from setpoint.rates.expression import Expression, Gradient, Tables
from setpoint.rates.rate import CATALOGUE, Rate, fpr, prevalence, tpr
from setpoint.rates.slices import ClassSet, Value

MEASURES = ("mcc", "kappa")


@dataclass(frozen=True, repr=False)
class Agreement(Expression):
    """Matthews' correlation coefficient (the phi coefficient) or Cohen's kappa.

    Args:
        measure: ``"mcc"`` or ``"kappa"``.
        hits: The true positive rate, of all examples or of a slice.
        alarms: The false positive rate of the same examples.
        prior: Their share of positives.
    """

    measure: str
    hits: Rate
    alarms: Rate
    prior: Rate
    _is_factor = True

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"Agreement is measured by mcc or kappa; got {self.measure!r}.")
        self._note(1.0)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The three shares it is a function of."""
        return self.hits, self.alarms, self.prior

    def value(self, tables: Tables) -> Array:
        """The value on ``tables``; 0 where everyone or nobody is accepted, NaN without a class."""
        return self.at_shares(*(child.value(tables) for child in self.children))

    def at_shares(self, hits: Array, alarms: Array, prior: Array) -> Array:
        """The value at shares of the positives and of the negatives, and a prior."""
        top, bottom, power, _ = self._parts(hits, alarms, prior)
        return divide(top * (hits - alarms), (bottom + (bottom == 0)) ** power)

    def gradient(self, tables: Tables) -> Gradient:
        """By the two shares; the prior does not move."""
        a, b, p = (child.value(tables) for child in self.children)
        top, bottom, power, slope = self._parts(a, b, p)
        bottom = bottom + (bottom == 0)
        level, bend = divide(top, bottom**power), divide(power * (a - b) * slope, bottom)
        by_hits, by_alarms = level * (1 - bend * p), level * (-1 - bend * (1 - p))
        return weighted_sum(
            (by_hits, self.hits.gradient(tables)), (by_alarms, self.alarms.gradient(tables))
        )

    def _parts(self, a: Array, b: Array, p: Array) -> tuple[Array, Array, float, Array]:
        """``top (a - b) / bottom^power``, and the slope of the bottom by the accepted share."""
        q, chance = p * a + (1 - p) * b, p * (1 - p)
        if self.measure == "mcc":
            return chance**0.5, q * (1 - q), 0.5, 1 - 2 * q
        return 2 * chance, q * (1 - p) + (1 - q) * p, 1.0, 1 - 2 * p

    def strongest_prior(self, hits: Array, alarms: Array) -> Array:
        """The prior at which the value is farthest from zero."""
        top, bottom = alarms, 1 - hits
        if self.measure == "mcc":
            top, bottom = alarms * (1 - alarms), hits * (1 - hits)
        return divide(top**0.5, top**0.5 + bottom**0.5)

    def on(self, /, **where: Value) -> Agreement:
        """The same on the examples where every column has the given value."""
        return Agreement(self.measure, *(rate.on(**where) for rate in self.rates()))

    def of_classes(self, classes: ClassSet) -> Agreement:
        """The same of a set of classes against the rest."""
        return Agreement(self.measure, *(rate.of_classes(classes) for rate in self.rates()))

    def __str__(self) -> str:
        return f"{self.measure}{self.hits.whom}"


mcc = CATALOGUE["mcc"] = Agreement("mcc", tpr, fpr, prevalence)
kappa = CATALOGUE["kappa"] = Agreement("kappa", tpr, fpr, prevalence)
