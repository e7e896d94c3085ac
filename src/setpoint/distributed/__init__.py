"""Several processes: the batches, gradients and files of all of them, as if they were one."""

from setpoint.distributed.everyone import everyone
from setpoint.distributed.nested import rows_of_all
from setpoint.distributed.ranks import (
    Reduction,
    rank_of,
    refuse_several_ranks,
    several_ranks,
    together,
    workers,
)
from setpoint.distributed.reduced import Row, averaged

__all__ = [
    "Reduction",
    "Row",
    "averaged",
    "everyone",
    "rank_of",
    "refuse_several_ranks",
    "rows_of_all",
    "several_ranks",
    "together",
    "workers",
]
