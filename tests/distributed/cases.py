"""Batches of every subject whose numbers must not depend on the number of processes."""

import numpy as np
import torch
from subjects import SUBJECTS

ROWS = 64
CASES = {name: subject for name, subject in SUBJECTS.items() if "ranks" in subject.laws}


def batch_of(case, step, dtype):
    """The whole batch of a step: features, labels, and what else the criterion is called with.

    In the second step positives come first, so that the last ranks have none.
    """
    r = torch.Generator().manual_seed(100 + step)
    y = (torch.rand(ROWS, generator=r) < 0.3).long()
    if step == 1:
        y = y.sort(descending=True).values
    x = torch.randn(ROWS, 4, generator=r, dtype=torch.float64) + 0.8 * y[:, None]
    more = {}
    if case.weights:
        more["weights"] = 0.5 + torch.rand(ROWS, generator=r, dtype=torch.float64)
    if case.resampling:
        more["resampling"] = torch.where(y > 0, 0.5, 2.0)
    member = torch.rand(ROWS, generator=r) < 0.5
    if case.groups == "text":
        more["groups"] = np.where(member.numpy(), "a", "bee")
    elif case.groups == "named":
        more["groups"] = {"group": member.long().numpy(), "unused": ["é", "x"] * (ROWS // 2)}
    elif case.groups == "tensor":
        more["groups"] = member.long()
    if case.queries:  # of five to eleven documents, in no order: ranks hold pieces of them
        more["queries"] = np.array(["é", "b", "c", "d", "e", "f", "g", "h"])[
            torch.randint(0, 8, (ROWS,), generator=r).numpy()
        ]
    if case.classes:
        y = (y + torch.randint(0, case.classes, (ROWS,), generator=r)) % case.classes
    elif case.outputs > 1:
        y = (torch.rand(ROWS, case.outputs, generator=r) < 0.3).long()
    return x.to(dtype), y, more
