"""TensorBoard, or any logger: a criterion says how the batch went in a plain dict.

pip install setpoint tensorboard && python examples/tensorboard_scalars.py
tensorboard --logdir runs
"""

import sys

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from setpoint import Implicit, tpr_at_fpr
from setpoint.datasets import letter, split
from setpoint.integrations.shared import scalars


def main(folder: str = "runs") -> None:
    torch.manual_seed(0)
    train, _, _ = split(letter(), seed=0)
    x, y = torch.tensor(train.x), torch.tensor(train.y)
    model, steps = nn.Linear(16, 1), 100
    criterion = Implicit(tpr_at_fpr(0.01), steps=steps)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            rows = torch.randint(len(x), (512,))
            loss = criterion(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                for name, value in scalars(criterion.stats()).items():
                    writer.add_scalar(name, value, step)
    print(f"written to {folder}: {', '.join(scalars(criterion.stats()))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
