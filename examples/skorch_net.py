"""skorch: our criterion as ``criterion=``, and a threshold with a promise around the net.

pip install "setpoint[skorch]" && python examples/skorch_net.py
"""

import numpy as np
import torch
from torch import nn

from setpoint import CertifiedThreshold, Implicit, tpr_at_fpr
from setpoint.datasets import letter, split
from setpoint.integrations.skorch import OperatingNet

GOAL = tpr_at_fpr(0.01)
EPOCHS, BATCH = 10, 512


def main() -> None:
    torch.manual_seed(0)
    train, validation, test = split(letter(), seed=0)
    x, y = (np.concatenate([train[i], validation[i]]) for i in (0, 1))
    net = OperatingNet(
        nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0)),
        criterion=Implicit,
        criterion__problem=GOAL,
        criterion__steps=EPOCHS * (len(x) * 3 // 4 // BATCH),
        optimizer=torch.optim.Adam,
        lr=0.01,
        max_epochs=EPOCHS,
        batch_size=BATCH,
        train_split=None,
        verbose=0,
    )
    model = CertifiedThreshold(net, goal=GOAL, calibration_fraction=0.25, random_state=0)
    model.fit(x.astype(np.float32), y.astype(np.float32))
    print(model.certificate_)
    accept = model.predict(test.x.astype(np.float32)) == 1
    print(f"On test: fpr {accept[test.y == 0].mean():.2%}, tpr {accept[test.y == 1].mean():.1%}")


if __name__ == "__main__":
    main()
