"""scikit-learn estimators: train for an operating point, or only certify a threshold."""

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "sklearn":
        raise
    raise ModuleNotFoundError(
        'setpoint.estimators needs scikit-learn: pip install "setpoint[sklearn]"', name="sklearn"
    ) from None

from setpoint.estimators.certified_threshold import CertifiedThreshold
from setpoint.estimators.classifier import Classifier
from setpoint.estimators.ranker import Ranker
from setpoint.estimators.thresholds import NotCertifiedWarning

__all__ = ["CertifiedThreshold", "Classifier", "NotCertifiedWarning", "Ranker"]
