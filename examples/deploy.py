"""Ship it: a module that decides, as an ONNX file that any runtime reads.

pip install "setpoint[onnx]" && python examples/deploy.py
"""

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from setpoint import Decision, Implicit, certify, fit, fnr_at_fpr
from setpoint.export import load_decision, save_decision, to_onnx


def payments(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """A tenth of fraud, somewhat shifted in all of four columns."""
    random = torch.Generator().manual_seed(seed)
    y = (torch.rand(rows, generator=random) < 0.1).long()
    return torch.randn(rows, 4, generator=random) + y[:, None], y


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))


def main() -> None:
    torch.manual_seed(0)
    x, y = payments(4000, seed=0)
    goal, steps = fnr_at_fpr(0.05), 300
    trained = fit(
        network(),
        Implicit(goal, steps=steps),
        x,
        y,
        steps=steps,
        batch_size=256,
        learning_rate=0.01,
        seed=0,
    )
    rows, truth = payments(4000, seed=1)  # had no part in training
    with torch.no_grad():
        certificate = certify(trained.model(rows), truth, goal)
    decision = Decision(trained.model, certificate)  # a batch in; decisions and scores out

    save_decision(decision, "decision.safetensors")  # weights, threshold, certificate; no pickle
    again = load_decision("decision.safetensors", network())
    to_onnx(decision, x[:2], "decision.onnx")
    session = onnxruntime.InferenceSession("decision.onnx")
    new, _ = payments(100_000, seed=2)
    accepted, _ = session.run(None, {session.get_inputs()[0].name: new.numpy()})
    ours, _ = again(new)
    print(f"{certificate.status}: {certificate.goal}")
    print(f"{np.sum(accepted != ours.numpy())} of {len(new):,} decisions differ in onnxruntime")


if __name__ == "__main__":
    main()
