"""Matrix products without oneDNN: it takes instructions for granted that virtual machines lack."""

from contextlib import contextmanager

import torch


@contextmanager
def plain_kernels():
    torch.backends.mkldnn.set_flags(_enabled=False)
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=True)
