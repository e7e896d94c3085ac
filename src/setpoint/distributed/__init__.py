"""Several processes: the batches, gradients and files of all of them, as if they were one."""

from setpoint.distributed.everyone import everyone
from setpoint.distributed.nested import columns_of, rows_of_all
from setpoint.distributed.packing import Layout, layout_of
from setpoint.distributed.ranks import (
    Reduction,
    rank_of,
    refuse_several_ranks,
    several_ranks,
    together,
    workers,
)
from setpoint.distributed.reduced import Row, averaged
from setpoint.distributed.sums import sums_of_all

__all__ = [
    "Layout",
    "Reduction",
    "Row",
    "averaged",
    "columns_of",
    "everyone",
    "layout_of",
    "rank_of",
    "refuse_several_ranks",
    "rows_of_all",
    "several_ranks",
    "sums_of_all",
    "together",
    "workers",
]
