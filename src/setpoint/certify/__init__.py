"""From scores to a promise: thresholds with finite-sample guarantees. Never torch.

The room is also its one function: ``from setpoint import certify`` may find either, whichever was
imported first, and both can be called.
"""

import sys
from types import ModuleType

from setpoint.certify.api import certify
from setpoint.certify.certificate import Certificate
from setpoint.certify.records import CannotPromise, Claim, Estimate, Point
from setpoint.certify.verdicts import Check, Finding

__all__ = [
    "CannotPromise",
    "Certificate",
    "Check",
    "Claim",
    "Estimate",
    "Finding",
    "Point",
    "certify",
]


class _Room(ModuleType):
    __call__ = staticmethod(certify)


sys.modules[__name__].__class__ = _Room
