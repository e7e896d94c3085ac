"""Several processes: ranks of ``torch.distributed``, and a pool of workers. Needs torch."""

from typing import TYPE_CHECKING

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint._extras import import_lazily
from setpoint.distributed.gather import gather_rows
from setpoint.distributed.ranks import (
    RankLost,
    Reduction,
    Row,
    average_gradients,
    in_global_batch,
    is_launched,
    join_launched,
    own_rows,
    rank_of,
    refuse_several_ranks,
    several_ranks,
    values_of_ranks,
    workers,
)

if TYPE_CHECKING:
    from setpoint.distributed.pool import (
        Pool,
        Processes,
        check_processes,
        check_sendable,
        count_step,
        open_pool,
    )

__all__ = [
    "Pool",
    "Processes",
    "RankLost",
    "Reduction",
    "Row",
    "average_gradients",
    "check_processes",
    "check_sendable",
    "count_step",
    "gather_rows",
    "in_global_batch",
    "is_launched",
    "join_launched",
    "open_pool",
    "own_rows",
    "rank_of",
    "refuse_several_ranks",
    "several_ranks",
    "values_of_ranks",
    "workers",
]

__getattr__ = import_lazily(__name__)
