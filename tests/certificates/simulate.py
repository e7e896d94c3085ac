"""Calibration samples whose truth is known: Gaussian, the positives 2.5 deviations higher."""

import math

import numpy as np
from scipy.special import ndtr

SHIFT = 2.5


def sample(seed, n=2500, prevalence=0.2, shift=SHIFT):
    random = np.random.default_rng(seed)
    labels = random.random(n) < prevalence
    return random.normal(size=n) + shift * labels, labels


def halves(scores):
    """Scores rounded to halves, with very many ties."""
    return np.round(2 * scores) / 2


def edge(threshold):
    """The unrounded score above which :func:`halves` exceeds a threshold."""
    return np.where(np.isinf(threshold), threshold, np.floor(2 * threshold) / 2 + 0.25)


def true_rates(cut, prevalence=0.2, shift=SHIFT):
    tpr, fpr = ndtr(shift - cut), ndtr(-cut)
    alerts = prevalence * tpr + (1 - prevalence) * fpr
    return {
        "recall": tpr,
        "fpr": fpr,
        "coverage": alerts,
        "precision": prevalence * tpr / alerts,
        "f1": 2 * prevalence * tpr / (prevalence + alerts),
    }


def most(share, draws):
    """A share and three standard errors."""
    return share + 3 * math.sqrt(share * (1 - share) / draws)
