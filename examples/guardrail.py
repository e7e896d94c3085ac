"""A guardrail for prompts: at most 1 of 1,000 harmless texts is stopped, promised per category.

    pip install "setpoint[transformers,sklearn]" && python examples/guardrail.py

TF-IDF with logistic regression, then a tiny transformer that is saved and decides in a pipeline.
With the environment variable SETPOINT_DATA, a folder with prompt_injection_mix and sms_spam, the
texts are real prompts and ordinary messages; without it they are made up on the spot.
"""

import os
import tempfile
import zlib
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    pipeline,
)

from setpoint import Implicit, certify
from setpoint.integrations.huggingface import DecisionPipeline, Goal

NAMES = ["injection", "jailbreak"]
GOAL = "maximize recall subject to fpr <= 0.1 %"
JAILBREAKS = ("jailbreak", "adversarial", "persona_replacement", "crescendo", "many_shot")


def real_texts(folder):
    """Prompts by category, and ordinary messages as harmless traffic."""
    import pandas as pd

    prompts = pd.read_csv(
        folder / "prompt_injection_mix/prompt_injection_mix.csv.xz", keep_default_na=False
    )
    messages = pd.read_csv(folder / "sms_spam/sms_spam.csv.xz", keep_default_na=False)
    kind = np.where(prompts.category.isin(JAILBREAKS), "jailbreak", "injection")
    kind = np.where(prompts.y == 0, "harmless", kind)
    harmless = messages.text[messages.y == 0]
    texts = np.array([*prompts.text, *harmless], dtype=object)
    kinds = np.array([*kind, *["harmless"] * len(harmless)])
    _, first = np.unique(texts, return_index=True)  # a copy is no further evidence
    return texts[first], kinds[first]


def made_up_texts(seed=0, harmless=10_000, attacks=800):
    """Sentences of common words; attacks have some words of their own, most of the time."""
    random = np.random.default_rng(seed)
    common = [f"word{i}" for i in range(300)]
    own = {
        "injection": ["ignore", "previous", "instructions", "system", "override", "reveal"],
        "jailbreak": ["pretend", "persona", "unrestricted", "roleplay", "rules", "dan"],
    }
    texts, kinds = [], []
    for kind, rows in (("harmless", harmless), ("injection", attacks), ("jailbreak", attacks)):
        for row in range(rows):
            words = list(random.choice(common, random.integers(8, 16)))
            choices = own.get(kind, [*own["injection"], *own["jailbreak"]])
            special = list(random.choice(choices, 4, replace=False))
            words += special if kind != "harmless" else special[: random.random() < 0.03]
            texts.append(" ".join(random.permutation([*words, f"nr{seed}x{row}"])))
            kinds.append(kind)
    return np.array(texts, dtype=object), np.array(kinds)


def labels_of(kinds):
    """One column per category: 1 for its attacks, 0 for harmless texts, NaN for other attacks."""
    columns = [np.where(kinds == name, 1.0, np.nan) for name in NAMES]
    return np.stack([np.where(kinds == "harmless", 0.0, column) for column in columns], 1)


def words_to_numbers(texts):
    """A tokenizer of the most frequent words, made on the spot."""
    plain = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    plain.normalizer = normalizers.Lowercase()
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]"]
    plain.train_from_iterator(
        texts, trainers.WordLevelTrainer(vocab_size=2000, special_tokens=special)
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]", model_max_length=32
    )


class Tokenized(torch.utils.data.Dataset):
    """Texts as numbers, with their labels."""

    def __init__(self, tokenizer, texts, labels):
        found = tokenizer(list(texts), padding="max_length", truncation=True, max_length=32)
        self.ids = torch.tensor(found["input_ids"])
        self.mask = torch.tensor(found["attention_mask"])
        self.labels = torch.tensor(labels, dtype=torch.float32)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, row):
        columns = {"input_ids": self.ids, "attention_mask": self.mask, "labels": self.labels}
        return {name: column[row] for name, column in columns.items()}


def show(name, certificate):
    """One line for each category."""
    for point, found in zip(certificate.points, certificate.objective, strict=True):
        print(
            f"{name}, {point.group}: {certificate.status}, recall {found.value:.0%}, fpr <= 0.1 %"
        )


def tiny_transformer(folder, train, calibration):
    """Train, certify, save; returns the certificate."""
    texts, kinds = train
    tokenizer = words_to_numbers(texts)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        num_labels=2,
        id2label=dict(enumerate(NAMES)),
        label2id={name: i for i, name in enumerate(NAMES)},
    )
    steps = 200  # a batch of 128 can hold 2 %; the threshold for 0.1 % is found on many rows
    criterion = Implicit("maximize recall subject to fpr <= 2 %", outputs=NAMES, steps=steps)
    goal = Goal(GOAL, criterion, outputs=NAMES)
    args = TrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=128,
        per_device_eval_batch_size=512,
        learning_rate=0.01,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    learned = Tokenized(tokenizer, texts, labels_of(kinds))
    trainer = Trainer(
        BertForSequenceClassification(config),
        args,
        train_dataset=learned,
        compute_loss_func=goal.loss,
        callbacks=[goal],
    )
    trainer.train()
    rows = Tokenized(tokenizer, calibration[0], labels_of(calibration[1]))
    certificate = goal.certify(trainer, rows)
    trainer.save_model(folder)
    tokenizer.save_pretrained(folder)
    return certificate


def main() -> None:
    data = os.environ.get("SETPOINT_DATA")
    texts, kinds = real_texts(Path(data)) if data else made_up_texts()
    part = np.array([zlib.crc32(text.encode()) % 100 for text in texts])
    train, rest = part < 38, part >= 38  # 3,700 harmless texts are needed to prove 0.1 % twice
    features = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    truth = np.nan_to_num(labels_of(kinds)).astype(int)
    model = OneVsRestClassifier(LogisticRegression(C=30, class_weight="balanced"))
    model.fit(features.fit_transform(texts[train]), truth[train])
    scores = model.decision_function(features.transform(texts[rest]))
    found = certify(scores, labels_of(kinds[rest]), GOAL, outputs=NAMES)
    show("TF-IDF", found)
    new, _ = made_up_texts(seed=1, harmless=5000, attacks=1)
    if not data:
        again = model.decision_function(features.transform(new[:5000]))
        stopped = found.decide(again).mean(axis=0)
        print("new harmless texts stopped: " + ", ".join(f"{share:.2%}" for share in stopped))
    with tempfile.TemporaryDirectory() as folder:
        parts = ((texts[p], kinds[p]) for p in (train, rest))
        certificate = tiny_transformer(folder, *parts)
        show("transformer", certificate)
        if certificate.certified:
            decide = pipeline("text-classification", model=folder, pipeline_class=DecisionPipeline)
            for text in (texts[kinds == "injection"][0], texts[kinds == "harmless"][0]):
                (found,) = decide([text], truncation=True)
                told = {each["label"]: each["decision"] for each in found}
                print(f"{text[:40]!r}...: stopped as {told}")


if __name__ == "__main__":
    main()
