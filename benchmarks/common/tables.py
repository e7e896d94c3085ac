"""Numbers over seeds, as the tables of the pages show them."""

from collections.abc import Sequence
from statistics import fmean, stdev


def mean_and_deviation(values: Sequence[float], digits: int = 1) -> str:
    """``55.3 ± 0.4``: mean and standard deviation over the seeds; of one seed the mean alone."""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"
