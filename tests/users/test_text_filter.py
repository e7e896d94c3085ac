"""Hugging Face: texts in a messy file, a tiny transformer, a saved folder that decides."""

import csv

import numpy as np
import pytest
import torch
import transformers
import transformers.trainer
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from setpoint.integrations.huggingface import DecisionPipeline, Goal, load_classifier

transformers.trainer.is_datasets_available = lambda: False  # it takes tests/datasets for one
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
WORDS = [f"w{i}" for i in range(40)]


def write(path, rows, seed):
    """Quotes, line breaks and emoji in the texts; the first words are those of spam."""
    random = np.random.default_rng(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "kind"])
        for _ in range(rows):
            spam = random.random() < 0.25
            chosen = random.choice(WORDS[:10] if spam else WORDS[5:], 10)
            writer.writerow(
                [' "quoted"\n'.join([" ".join(chosen), "🙂"]), "spam" if spam else "ham"]
            )


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], np.array([row["kind"] == "spam" for row in rows])


def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    known = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *WORDS])}
    plain = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]"
    )


class Rows(torch.utils.data.Dataset):
    def __init__(self, texts, labels):
        ids = tokenizer()(texts, padding="max_length", max_length=16, truncation=True)
        self.ids, self.labels = torch.tensor(ids["input_ids"]), torch.tensor(labels).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, row):
        return {"input_ids": self.ids[row], "labels": self.labels[row]}


def test_from_files_of_texts_to_a_pipeline_that_decides(tmp_path):
    for name, rows in (("train", 1500), ("calibration", 1500), ("new", 400)):
        write(tmp_path / f"{name}.csv", rows, seed=rows + len(name))
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=42, intermediate_size=16, num_labels=1, **sizes)
    goal = Goal("maximize recall subject to fpr <= 5 %")
    args = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=50,
        per_device_train_batch_size=64,
        learning_rate=0.02,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
    )
    trainer = Trainer(
        BertForSequenceClassification(config),
        args,
        train_dataset=Rows(*read(tmp_path / "train.csv")),
        compute_loss_func=goal.loss,
        callbacks=[goal],
    )
    trainer.train()
    certificate = goal.certify(trainer, Rows(*read(tmp_path / "calibration.csv")))
    assert certificate.certified
    trainer.save_model(tmp_path / "saved")
    tokenizer().save_pretrained(tmp_path / "saved")
    texts, spam = read(tmp_path / "new.csv")
    pipe = transformers.pipeline(
        "text-classification", model=str(tmp_path / "saved"), pipeline_class=DecisionPipeline
    )
    found = np.array([each["decision"] for each in pipe(texts, batch_size=100)])
    assert found[~spam].mean() <= 0.05 + 3 * (0.05 * 0.95 / (~spam).sum()) ** 0.5
    assert found[spam].mean() > 0.5
    with torch.no_grad():
        same, _ = load_classifier(tmp_path / "saved")({"input_ids": Rows(texts, spam).ids})
    assert (same.numpy() == found).mean() > 0.99  # another padding: scores differ in the last bit
