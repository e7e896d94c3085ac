"""A tiny, randomly initialised transformer under the real Trainer."""

import json
import os

import pytest
import torch
import transformers.trainer
from integrations.ranks import on_ranks
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from setpoint import Certificate, Implicit, tpr_at_fpr
from setpoint.integrations.huggingface import (
    DecisionPipeline,
    Goal,
    load_classifier,
    scores_of,
)

transformers.trainer.is_datasets_available = lambda: False  # it takes tests/datasets for one
GOAL = tpr_at_fpr(0.2)
# accelerate and torch warn about pinned memory without a GPU and about their own futures
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


class Words(torch.utils.data.Dataset):
    """Sequences of eight words; positives have more of the first few."""

    def __init__(self, n, seed):
        random = torch.Generator().manual_seed(seed)
        self.labels = (torch.arange(n) % 4 == 0).long()
        self.words = torch.randint(2, 20, (n, 8), generator=random)
        few = torch.randint(2, 5, (n, 8), generator=random)
        some = torch.rand(n, 8, generator=random) < 0.5
        self.words = torch.where(some & (self.labels == 1)[:, None], few, self.words)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.words[i], "labels": self.labels[i]}


def tiny(labels=1):
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(
        **sizes,
        intermediate_size=8,
        max_position_embeddings=8,
        num_labels=labels,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config)


def settings(folder, **more):
    usual = {
        "per_device_train_batch_size": 16,
        "max_steps": 1,
        "learning_rate": 1.0,
        "lr_scheduler_type": "constant",
        "optim": "sgd",
        "max_grad_norm": 0.0,
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "save_strategy": "no",
        "logging_strategy": "no",
        "seed": 3,
    }
    return TrainingArguments(output_dir=str(folder), **{**usual, **more})


class InOrder(Trainer):
    """Rows as they come, to compare with batches of our own."""

    def _get_train_sampler(self, *given):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def moved(folder, loss, *, callbacks=(), data=None, **more):
    """How far the head's weights go in one optimizer step of plain descent at rate 1."""
    model = tiny()
    before = model.classifier.weight.detach().clone()
    trainer = InOrder(
        model,
        settings(folder, **more),
        train_dataset=data or Words(64, 0),
        compute_loss_func=loss,
        callbacks=[*callbacks],
    )
    trainer.train()
    return (model.classifier.weight.detach() - before).flatten()


def means(rows, size):
    """The mean over batches of the criterion's gradient, weighted by their rows: what is right."""
    model, data = tiny(), Words(64, 0)
    weight = model.classifier.weight
    total = torch.zeros_like(weight)
    for part in torch.as_tensor(rows).split(size):
        scores = scores_of(model(input_ids=data.words[part]).logits)
        loss = Implicit(GOAL, share=0.3)(scores, data.labels[part])
        total += torch.autograd.grad(loss, weight)[0] * len(part) / len(rows)
    return -total.flatten()


@pytest.mark.parametrize("accumulate", [1, 4])
def test_a_step_is_the_mean_over_accumulated_batches(tmp_path, accumulate):
    goal = Goal(GOAL, Implicit(GOAL, share=0.3))
    step = moved(tmp_path, goal.loss, callbacks=[goal], gradient_accumulation_steps=accumulate)
    torch.testing.assert_close(step, means(range(16 * accumulate), 16), rtol=1e-4, atol=1e-7)


def test_a_mean_returned_as_it_is_makes_the_step_four_times_too_long(tmp_path):
    """What goes wrong without the scaling: the Trainer adds up and does not divide."""
    criterion = Implicit(GOAL, share=0.3)

    def naive(outputs, labels, num_items_in_batch=None):
        return criterion(outputs.logits, labels)

    step = moved(tmp_path, naive, gradient_accumulation_steps=4)
    torch.testing.assert_close(step, 4 * means(range(64), 16), rtol=1e-4, atol=1e-7)


def test_batches_of_unequal_size_count_by_their_rows(tmp_path):
    goal = Goal(GOAL, Implicit(GOAL, share=0.3))
    data = torch.utils.data.Subset(Words(64, 0), range(40))
    step = moved(tmp_path, goal.loss, callbacks=[goal], data=data, gradient_accumulation_steps=3)
    torch.testing.assert_close(step, means(range(40), 16), rtol=1e-4, atol=1e-7)


def two_processes(rank, folder):
    """One optimizer step of two accumulated batches on each of two ranks."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    found = {}
    for averaged in (True, False):
        goal = Goal(GOAL, Implicit(GOAL, share=0.3))
        step = moved(
            f"{folder}/{rank}{averaged}",
            goal.loss,
            callbacks=[goal],
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            average_tokens_across_devices=averaged,
            ddp_backend="gloo",
        )
        found[str(averaged)] = step.tolist()
    return found


@pytest.mark.slow
def test_two_processes_take_the_step_of_one(tmp_path):
    """Batches of 8 on two ranks are batches of 16, however the Trainer counts items."""
    expected = means(range(32), 16)
    for found in on_ranks(two_processes, 2, tmp_path):
        for step in found.values():
            torch.testing.assert_close(torch.tensor(step), expected, rtol=1e-4, atol=1e-7)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    goal, model = Goal(GOAL), tiny(labels=2)
    args = settings(
        folder,
        max_steps=40,
        optim="adamw_torch",
        learning_rate=0.02,
        eval_strategy="steps",
        eval_steps=20,
        save_strategy="steps",
        save_steps=20,
        gradient_accumulation_steps=2,
    )
    trainer = Trainer(
        model,
        args,
        train_dataset=Words(384, 1),
        eval_dataset=Words(200, 2),
        compute_loss_func=goal.loss,
        compute_metrics=goal.metrics,
        callbacks=[goal],
    )
    trainer.train()
    return goal, trainer, folder


def test_metrics_are_those_of_the_goal_and_the_threshold_is_in_the_saved_config(trained):
    _, trainer, folder = trained
    data = Words(200, 2)
    metrics = trainer.evaluate()
    with torch.no_grad():
        scores = scores_of(trainer.model.eval()(input_ids=data.words).logits)
    assert metrics["eval_setpoint/goal"] == pytest.approx(GOAL.evaluate(scores, data.labels))
    assert metrics["eval_setpoint/goal"] > 0.5  # chance would be 0.2
    assert metrics["eval_setpoint/status"] == 1.0
    assert metrics["eval_setpoint/fpr"] <= 0.2
    trainer.save_model(folder / "saved")
    kept = json.loads((folder / "saved" / "config.json").read_text())["setpoint"]
    assert kept["goal"] == str(GOAL)
    assert kept["thresholds"] == [pytest.approx(metrics["eval_setpoint/threshold"])]
    loaded = BertForSequenceClassification.from_pretrained(folder / "saved")
    assert loaded.config.setpoint == kept


def test_the_criterion_knows_its_steps_and_goes_on_from_a_checkpoint(trained, tmp_path):
    goal, _, folder = trained
    assert goal.criterion.steps == 80  # batches, of which an optimizer step takes two
    assert int(goal.criterion.step_count) == 80
    again = Goal(GOAL)
    args = settings(
        folder, max_steps=21, gradient_accumulation_steps=2, optim="adamw_torch", learning_rate=0.02
    )
    resumed = Trainer(
        tiny(labels=2),
        args,
        train_dataset=Words(384, 1),
        compute_loss_func=again.loss,
        callbacks=[again],
    )
    resumed.train(resume_from_checkpoint=str(folder / "checkpoint-20"))
    assert int(again.criterion.step_count) == 42


def test_certify_on_rows_of_their_own_goes_into_the_config(trained):
    goal, trainer, _ = trained
    certificate = goal.certify(trainer, Words(600, 5))
    assert certificate.certified
    kept = trainer.model.config.setpoint
    assert kept["certified"]
    assert kept["thresholds"] == [certificate.threshold]
    assert Certificate.from_json(kept["certificate"]) == certificate


def test_logits_of_other_shapes_are_refused():
    assert scores_of(torch.tensor([[1.0, 3.0]])).tolist() == [2.0]
    with pytest.raises(ValueError, match="num_labels=1 or 2"):
        scores_of(torch.zeros(4, 3))


def tokenizer():
    """Words w2 to w19, as numbers, and nothing that is downloaded."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"[PAD]": 0, "[UNK]": 1, **{f"w{i}": i for i in range(2, 20)}}
    plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]")


def texts(data):
    return [" ".join(f"w{word}" for word in row) for row in data.words.tolist()]


def test_a_saved_model_decides(trained, tmp_path):
    goal, trainer, _ = trained
    certificate = goal.certify(trainer, Words(600, 5))
    trainer.save_model(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    data = Words(200, 6)
    decision = load_classifier(tmp_path)
    with torch.no_grad():
        decided, scores = decision({"input_ids": data.words})
    assert torch.equal(decided, certificate.decide(scores))
    assert 20 < int(decided.sum()) < 180
    alarms = decided[data.labels == 0].double().mean()
    assert float(alarms) < 0.2 + 3 * (0.2 * 0.8 / 150) ** 0.5  # three deviations
    pipe = transformers.pipeline(
        "text-classification", model=str(tmp_path), pipeline_class=DecisionPipeline
    )
    found = pipe(texts(data), batch_size=50)
    assert [each["decision"] for each in found] == decided.tolist()
    assert [each["score"] for each in found] == pytest.approx(scores.tolist(), abs=1e-5)
    assert {each["label"] for each in found} == {"LABEL_1"}


def test_a_model_without_a_certificate_does_not_decide(tmp_path):
    model = tiny(labels=1)
    with pytest.raises(ValueError, match=r"no certificate: call goal.certify"):
        load_classifier(model)
    goal = Goal(GOAL)
    args = settings(tmp_path)
    trainer = Trainer(model, args, compute_loss_func=goal.loss, callbacks=[goal])
    goal.certify(trainer, Words(12, 5))  # too few rows for a proof
    with pytest.raises(ValueError, match="no certified threshold for the goal"):
        load_classifier(model)


class TwoLabels(Words):
    """The same sequences with a second label: whether the last word is a high one."""

    def __init__(self, n, seed):
        super().__init__(n, seed)
        self.labels = torch.stack([self.labels, (self.words[:, -1] > 12).long()], 1).float()


def test_several_outputs_train_are_measured_certified_and_decide(tmp_path):
    names = ["few", "high"]
    goal, model = Goal(GOAL, outputs=names), tiny(labels=2)
    args = settings(tmp_path, max_steps=60, optim="adamw_torch", learning_rate=0.02)
    trainer = Trainer(
        model,
        args,
        train_dataset=TwoLabels(384, 1),
        eval_dataset=TwoLabels(300, 2),
        compute_loss_func=goal.loss,
        compute_metrics=goal.metrics,
        callbacks=[goal],
    )
    trainer.train()
    found = trainer.evaluate()
    data = TwoLabels(300, 2)
    with torch.no_grad():
        logits = trainer.model.eval()(input_ids=data.words).logits
    for place, name in enumerate(names):
        value = GOAL.evaluate(logits[:, place], data.labels[:, place])
        assert found[f"eval_setpoint/goal/{name}"] == pytest.approx(value)
    assert set(goal.criterion.statuses) == set(names)
    certificate = goal.certify(trainer, TwoLabels(600, 5))
    assert list(certificate.thresholds) == names
    assert trainer.model.config.setpoint["thresholds"] == list(certificate.thresholds.values())
    trainer.save_model(tmp_path / "saved")
    tokenizer().save_pretrained(tmp_path / "saved")
    decision = load_classifier(tmp_path / "saved")
    assert decision.outputs == ("few", "high")
    with torch.no_grad():
        decided, scores = decision({"input_ids": data.words})
    assert torch.equal(decided, certificate.decide(scores))
    pipe = transformers.pipeline(
        "text-classification", model=str(tmp_path / "saved"), pipeline_class=DecisionPipeline
    )
    (first, *_) = pipe(texts(data)[:3])
    assert [each["label"] for each in first] == names
    assert [each["decision"] for each in first] == decided[0].tolist()
