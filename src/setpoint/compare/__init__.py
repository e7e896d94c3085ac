"""One problem by several methods: same splits, same budget, same rule of choice, one table.

The room is also its one function, as ``setpoint.certify`` is.
"""

import sys
from types import ModuleType

from setpoint.compare.api import compare
from setpoint.compare.comparison import Comparison, Row
from setpoint.compare.trial import Trial

__all__ = ["Comparison", "Row", "Trial", "compare"]


class _Room(ModuleType):
    __call__ = staticmethod(compare)


sys.modules[__name__].__class__ = _Room
