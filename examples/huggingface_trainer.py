"""Hugging Face Trainer: our loss, metrics, and the threshold in the saved config.

    pip install "setpoint[transformers]" && python examples/huggingface_trainer.py

A tiny, randomly initialised transformer on sequences made up on the spot, so that it runs offline
in seconds; put a pretrained model and a tokenized data set in their places.
"""

import json
import tempfile
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from setpoint import tpr_at_fpr
from setpoint.integrations.huggingface import Goal


class Words(Dataset):
    """Sequences of 16 words; every fourth has more of three of them."""

    def __init__(self, rows, seed):
        random = torch.Generator().manual_seed(seed)
        self.labels = (torch.arange(rows) % 4 == 0).long()
        words = torch.randint(0, 50, (rows, 16), generator=random)
        often = torch.rand(rows, 16, generator=random) < 0.25
        self.words = torch.where(often & (self.labels == 1)[:, None], words % 3, words)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        return {"input_ids": self.words[row], "labels": self.labels[row]}


def main() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=50, intermediate_size=32, num_labels=1, **sizes)
    goal = Goal(tpr_at_fpr(0.05))
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            max_steps=60,
            per_device_train_batch_size=64,
            gradient_accumulation_steps=2,  # the loss is scaled for it
            learning_rate=0.01,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            BertForSequenceClassification(config),
            args,
            train_dataset=Words(4000, 1),
            eval_dataset=Words(1000, 2),
            compute_loss_func=goal.loss,
            compute_metrics=goal.metrics,
            callbacks=[goal],
        )
        trainer.train()
        found = trainer.evaluate()
        value, alarms = found["eval_setpoint/goal"], found["eval_setpoint/fpr"]
        print(f"validation: tpr {value:.1%} at fpr {alarms:.2%}")
        print(goal.certify(trainer, Words(2000, 3)))  # rows the model has not seen
        trainer.save_model(folder)
        kept = json.loads((Path(folder) / "config.json").read_text())["setpoint"]
        print(f"config.json has the threshold {kept['thresholds'][0]:.4f} of `{kept['goal']}`")


if __name__ == "__main__":
    main()
