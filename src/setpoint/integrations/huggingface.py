"""Hugging Face Trainer: one goal as its loss and its metrics; saved models and pipelines decide.

The Trainer adds up what ``compute_loss_func`` returns over the batches of an optimizer step, and
with ``average_tokens_across_devices`` multiplies it by the number of processes; it expects sums
divided by ``num_items_in_batch``. A criterion's loss is a mean, so returned as it is, G accumulated
batches make the step G times too long. Here it is multiplied by the batch's share of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save
from torch import Tensor, nn

from setpoint._extras import install_advice
from setpoint._files import write_file
from setpoint.axes.outputs import check_output_columns, output_names
from setpoint.certificates import Certificate
from setpoint.export.decision import Decision
from setpoint.integrations.shared import goal_metrics, try_certify
from setpoint.problems import GoalLike, as_problem
from setpoint.solvers import BatchCriterion, Implicit

try:
    from transformers import (
        AutoModelForSequenceClassification,
        EvalPrediction,
        PreTrainedModel,
        TextClassificationPipeline,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )
except ModuleNotFoundError as missing:
    raise install_advice(missing) from None

_STATE = "setpoint_criterion.safetensors"
_IGNORED = -100
_PREFIX = "setpoint/"


class Goal(TrainerCallback):  # type: ignore[misc]
    """A goal for a Trainer of a binary classifier, or of one with several binary outputs.

    ``Trainer(..., compute_loss_func=goal.loss, compute_metrics=goal.metrics, callbacks=[goal])``.
    Scores are the one logit of a model with ``num_labels=1``, or the difference of two; with
    ``outputs`` every logit is the score of one output. After :meth:`certify` the certificate is
    in the model's config, so ``save_model`` keeps it, and :func:`load_classifier` and
    :class:`DecisionPipeline` decide by it.

    On accumulated batches the step is the mean of the batches' gradients, each at its own
    threshold; only a larger batch is the gradient of a larger batch.

    Args:
        problem: The goal.
        criterion: What trains for it; None: :class:`setpoint.Implicit` with as many steps as the
            Trainer plans. Any criterion called with scores and labels will do.
        outputs: Names of several binary outputs, in the order of the logits; labels are
            ``[n, c]``, NaN where a row is not labelled for an output.

    Examples:
        >>> goal = Goal("maximize recall subject to fpr <= 0.05")
        >>> print(goal.problem)
        maximize recall subject to fpr <= 0.05
    """

    def __init__(
        self,
        problem: GoalLike,
        criterion: nn.Module | None = None,
        *,
        outputs: Sequence[str] | None = None,
    ) -> None:
        self.problem = as_problem(problem, "Goal")
        self.criterion = criterion
        self.outputs = None if outputs is None else output_names(outputs)
        self.thresholds: list[float] = []
        self._averages, self._devices = True, 1

    def on_train_begin(
        self, args: TrainingArguments, state: Any, control: Any, **more: Any
    ) -> None:
        """Build the criterion for the planned steps; restore its state from a checkpoint."""
        if self.criterion is None:
            steps = state.max_steps * args.gradient_accumulation_steps
            self.criterion = Implicit(self.problem, steps=steps, outputs=self.outputs)
        self.criterion.to(args.device)
        self._averages = bool(args.average_tokens_across_devices)
        self._devices = args.n_gpu if args.n_gpu > 1 else args.world_size
        if (
            args.world_size > 1
            and isinstance(self.criterion, BatchCriterion)
            and self.criterion.reduction is None
        ):
            self.criterion.reduction = "mean"  # what the Trainer's own wrapper of the model does
        saved = Path(args.output_dir) / f"checkpoint-{state.global_step}" / _STATE
        if state.global_step and saved.exists():
            self.criterion.load_state_dict(load_file(saved))

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """For ``compute_loss_func``: the criterion's loss, as the Trainer expects it scaled."""
        logits = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
        scores, labels = self._read(logits, labels)
        if self.criterion is None:  # evaluation without training
            self.criterion = Implicit(self.problem, outputs=self.outputs)
        known = ~labels.isnan()
        given = {} if bool(known.all()) else {"weights": known.to(scores.dtype)}
        loss: Tensor = self.criterion(scores, labels.nan_to_num(), **given)
        if num_items_in_batch is None:
            return loss
        total = torch.as_tensor(num_items_in_batch, device=scores.device).reshape(-1)[0].double()
        mine = torch.stack([labels.ne(_IGNORED).sum().to(total), total])
        if dist.is_initialized() and dist.get_world_size() > 1:
            dist.all_reduce(mine)
            if self._averages:  # the Trainer has already added up the total of all processes
                mine[1] = total
        share = mine[0] / mine[1]
        return loss * (share / (self._devices if self._averages else 1)).to(loss.dtype)

    def metrics(self, prediction: EvalPrediction) -> dict[str, float]:
        """For ``compute_metrics``: the goal's value, the rates and the best threshold.

        Keys are those of :func:`setpoint.integrations.shared.goal_metrics`; the Trainer puts
        ``eval_`` before them: ``metric_for_best_model="setpoint/goal"``.
        """
        seen = self._of_prediction(prediction)
        found = goal_metrics(*seen, self.problem, outputs=self.outputs, prefix=_PREFIX)
        keys = [f"{_PREFIX}threshold/{name}" for name in self.outputs or ()]
        keys = keys or [key for key in found if key.startswith(f"{_PREFIX}threshold")]
        self.thresholds = [found[key] for key in keys if key in found]
        return found

    def on_evaluate(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        """Put the threshold into the config: the next ``save_pretrained`` keeps it."""
        if self.thresholds:
            more["model"].config.setpoint = {
                "goal": str(self.problem),
                "thresholds": self.thresholds,
                "certified": False,
            }

    def on_save(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        """Save the criterion's state beside the checkpoint."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir() and self.criterion is not None:
            state_of = self.criterion.state_dict()
            tensors = {k: v.detach().cpu().contiguous() for k, v in state_of.items()}
            write_file(folder / _STATE, save(tensors))

    def certify(
        self, trainer: Trainer, dataset: Any, *, confidence: float = 0.95, candidates: int = 1
    ) -> Certificate:
        """Certify a threshold on rows the model has not seen, and keep it in the config.

        Args:
            trainer: The Trainer, trained.
            dataset: Rows that neither trained nor chose the model.
            confidence: Of the certificate.
            candidates: From how many models this one was chosen by looking at these very rows.

        Of several outputs all promises hold together, and one of which nothing can be proved has
        no threshold (None in the config).

        Raises:
            ValueError: The goal cannot be certified.
        """
        seen = self._of_prediction(trainer.predict(dataset))
        options: dict[str, Any] = {"confidence": confidence, "candidates": candidates}
        certificate, reason = try_certify(self.problem, *seen, **options, outputs=self.outputs)
        if certificate is None:
            raise ValueError(f"No certificate: {reason}")
        at: list[float | None] = []
        if certificate.certified and self.outputs is None:
            at = [certificate.threshold]
        elif certificate.certified:
            at = [certificate.thresholds.get(name) for name in self.outputs or ()]
        kept = {"goal": str(self.problem), "certified": certificate.certified, "thresholds": at}
        trainer.model.config.setpoint = {**kept, "certificate": certificate.to_json()}
        return certificate

    def _of_prediction(self, prediction: Any) -> tuple[Tensor, Tensor]:
        """Scores and labels; of a model that returns more, the first are the logits."""
        logits = prediction.predictions
        logits = torch.as_tensor(logits[0] if isinstance(logits, tuple) else logits)
        return self._read(logits, torch.as_tensor(prediction.label_ids))

    def _read(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        if self.outputs is not None:
            check_output_columns(self.outputs, logits.shape[-1])
            return logits, labels
        return scores_of(logits), labels.reshape(-1)


class SequenceScores(nn.Module):
    """The scores of a sequence classifier, called with a batch of a tokenizer (a mapping)."""

    def __init__(self, model: nn.Module, several: bool) -> None:
        super().__init__()
        self.model, self.several = model, several

    def forward(self, x: Mapping[str, Tensor]) -> Tensor:
        """Scores ``[n]``, or ``[n, c]`` of several outputs."""
        logits: Tensor = self.model(**x).logits
        return logits if self.several else scores_of(logits)


def load_classifier(model: str | Path | PreTrainedModel) -> Decision:
    """A saved model as a module that decides: a batch of its tokenizer in, decisions out.

    Args:
        model: A folder that ``trainer.save_model`` wrote after :meth:`Goal.certify`, or the model.

    Raises:
        ValueError: There is no certificate in its config, or it proves nothing.
    """
    if not isinstance(model, PreTrainedModel):
        model = AutoModelForSequenceClassification.from_pretrained(model)
    found = certificate_of(model.config)
    return Decision(SequenceScores(model, bool(found.outputs)), found).eval()


def certificate_of(config: Any) -> Certificate:
    """The certificate in a model's config.

    Raises:
        ValueError: There is none, or it proves nothing.
    """
    kept = getattr(config, "setpoint", None) or {}
    if "certificate" not in kept:
        raise ValueError(
            "The model's config has no certificate: call goal.certify(trainer, rows) and save the "
            "model again."
        )
    found = Certificate.from_json(kept["certificate"])
    if not found.certified:
        raise ValueError("There is no certified threshold for the goal.")
    return found


class DecisionPipeline(TextClassificationPipeline):  # type: ignore[misc]
    """A text classification pipeline that decides by the certificate in the model's config.

    ``pipeline("text-classification", model=folder, pipeline_class=DecisionPipeline)``. Every text
    gives ``{"label": ..., "score": ..., "decision": ...}``: the raw score that was certified, and
    whether it is above the threshold. With several outputs it gives a list, one dict for each.

    Examples:
        >>> import numpy as np
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> from transformers import BertConfig, BertForSequenceClassification
        >>> from transformers import PreTrainedTokenizerFast
        >>> from setpoint import certify
        >>> plain = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "spam": 2}, "[UNK]"))
        >>> plain.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> words = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]")
        >>> sizes = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1}
        >>> config = BertConfig(vocab_size=3, intermediate_size=4, num_labels=1, **sizes)
        >>> labels = np.arange(3000) % 3 == 0
        >>> scores = np.random.default_rng(0).normal(size=3000) + 3 * labels
        >>> config.setpoint = {"certificate": certify(scores, labels, "fpr <= 0.05").to_json()}
        >>> decide = DecisionPipeline(model=BertForSequenceClassification(config), tokenizer=words)
        >>> sorted(decide("spam spam")[0])
        ['decision', 'label', 'score']
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.certificate = certificate_of(self.model.config)

    def postprocess(self, model_outputs: Any, *given: Any, **options: Any) -> Any:
        """Compare the scores with their thresholds."""
        logits, names = model_outputs["logits"], self.model.config.id2label
        several = self.certificate.outputs
        scores = logits if several else scores_of(logits)
        labels = several or (names[len(names) - 1],)
        both = (x.reshape(-1).tolist() for x in (scores, self.certificate.decide(scores)))
        found = [
            {"label": label, "score": score, "decision": decision}
            for label, score, decision in zip(labels, *both, strict=True)
        ]
        return found if several else found[0]


def scores_of(logits: Tensor) -> Tensor:
    """One score per example ``[n]``: the only logit, or the second minus the first.

    Raises:
        ValueError: There are more than two logits per example.
    """
    if logits.ndim == 2 and logits.shape[1] == 2:
        return logits[:, 1] - logits[:, 0]
    if logits.ndim == 1 or (logits.ndim == 2 and logits.shape[1] == 1):
        return logits.reshape(-1)
    raise ValueError(
        "A goal is about one score per example: logits of shape [n], [n, 1] or [n, 2]; "
        f"got {tuple(logits.shape)}. Use a model with num_labels=1 or 2."
    )
