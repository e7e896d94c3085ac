"""``Implicit`` with another rule for where its threshold sits, or for how soft counts are made."""

from typing import Any, ClassVar

from setpoint import Implicit, Problem
from setpoint.axes import Everyone


class WithAxis(Implicit):
    """:class:`setpoint.Implicit` on an axis of its own; takes the same options.

    Subclasses name the axis in ``axis_type``.
    """

    axis_type: ClassVar[type[Everyone]] = Everyone

    def __init__(self, problem: Problem, **options: Any) -> None:
        super().__init__(problem, **options)
        usual = self.axis
        self.axis = self.axis_type(problem, flatness=usual.flatness, slope_floor=usual.slope_floor)
