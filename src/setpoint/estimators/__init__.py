"""scikit-learn estimators: train for an operating point, or only certify a threshold.

:class:`CertifiedThreshold` needs numpy, scipy and scikit-learn alone. :class:`Classifier` and
:class:`Ranker` train with torch, which is imported when one of them is first used.
"""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily, install_advice

try:
    import sklearn as _sklearn  # noqa: F401

    from setpoint.certificates.copies import CopiedRowsWarning
    from setpoint.estimators.certified_threshold import CertifiedThreshold
    from setpoint.estimators.decisions import NotCertifiedWarning
    from setpoint.estimators.monitored import MonitoredClassifier
except ModuleNotFoundError as missing:
    raise install_advice(missing) from None

if TYPE_CHECKING:
    from setpoint.estimators.classifier import Classifier
    from setpoint.estimators.ranker import Ranker

__all__ = [
    "CertifiedThreshold",
    "Classifier",
    "CopiedRowsWarning",
    "MonitoredClassifier",
    "NotCertifiedWarning",
    "Ranker",
]

__getattr__ = import_lazily(__name__)
