"""Lightning: an ordinary module with our loss, and a callback that certifies its threshold.

pip install "setpoint[lightning]" && python examples/lightning_callback.py
"""

import tempfile

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from setpoint import Implicit, tpr_at_fpr
from setpoint.datasets import letter, split
from setpoint.integrations.lightning import Recalibrate

GOAL = tpr_at_fpr(0.01)
EPOCHS, BATCH = 4, 512


class Letters(pl.LightningModule):
    """Find the U among 26 letters."""

    def __init__(self, steps):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
        self.criterion = Implicit(GOAL, steps=steps)  # an attribute: checkpoints keep its state

    def training_step(self, batch, index):
        """One forward pass; Lightning does the backward pass."""
        x, y = batch
        return self.criterion(self.model(x), y)

    def validation_step(self, batch, index):
        """Hand the scores to the callback."""
        x, y = batch
        return self.model(x), y

    def configure_optimizers(self):
        """Any optimizer."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main() -> None:
    torch.manual_seed(0)
    train, validation, test = split(letter(), seed=0)
    rows = [
        TensorDataset(torch.tensor(part.x), torch.tensor(part.y)) for part in (train, validation)
    ]
    module = Letters(steps=EPOCHS * (len(train.x) // BATCH))
    with tempfile.TemporaryDirectory() as folder:
        recalibrate = Recalibrate(GOAL, folder=folder)  # writes certificate.json
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = pl.Trainer(
            max_epochs=EPOCHS,
            accelerator="cpu",
            callbacks=[recalibrate],
            default_root_dir=folder,
            enable_checkpointing=False,
            **quiet,
        )
        loaders = (
            DataLoader(rows[0], BATCH, shuffle=True, drop_last=True),
            DataLoader(rows[1], 4096),
        )
        trainer.fit(module, *loaders)
    print(recalibrate.certificate)
    with torch.no_grad():
        accept = recalibrate.certificate.decide(module.model(torch.tensor(test.x))[:, 0]).numpy()
    print(f"On test: fpr {accept[test.y == 0].mean():.2%}, tpr {accept[test.y == 1].mean():.1%}")


if __name__ == "__main__":
    main()
