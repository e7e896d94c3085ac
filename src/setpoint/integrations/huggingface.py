"""Hugging Face Trainer: one goal as its loss, its metrics, and the threshold in the saved config.

The Trainer adds up what ``compute_loss_func`` returns over the batches of an optimizer step, and
with ``average_tokens_across_devices`` multiplies it by the number of processes; it expects sums
divided by ``num_items_in_batch``. A criterion's loss is a mean, so returned as it is, G accumulated
batches make the step G times too long. Here it is multiplied by the batch's share of the step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from setpoint._extras import install_advice
from setpoint.certificates import Certificate
from setpoint.integrations.shared import best_choice, scalars, try_certify
from setpoint.problems import Choice, GoalLike, as_problem
from setpoint.solvers import BatchCriterion, Implicit

try:
    from transformers import EvalPrediction, Trainer, TrainerCallback, TrainingArguments
except ModuleNotFoundError as missing:
    raise install_advice(missing) from None

_STATE = "setpoint_criterion.safetensors"
_IGNORED = -100


class Goal(TrainerCallback):  # type: ignore[misc]
    """A goal for a Trainer of a binary classifier.

    ``Trainer(..., compute_loss_func=goal.loss, compute_metrics=goal.metrics, callbacks=[goal])``.
    Scores are the one logit of a model with ``num_labels=1``, or the difference of two.

    On accumulated batches the step is the mean of the batches' gradients, each at its own
    threshold; only a larger batch is the gradient of a larger batch.

    Args:
        problem: The goal.
        criterion: What trains for it; None: :class:`setpoint.Implicit` with as many steps as the
            Trainer plans. Any criterion called with scores and labels will do.
    """

    def __init__(self, problem: GoalLike, criterion: nn.Module | None = None) -> None:
        self.problem = as_problem(problem, "Goal")
        self.criterion = criterion
        self.choice = Choice((), 0.0, {})
        self._averages, self._devices = True, 1

    def on_train_begin(
        self, args: TrainingArguments, state: Any, control: Any, **more: Any
    ) -> None:
        """Build the criterion for the planned steps; restore its state from a checkpoint."""
        if self.criterion is None:
            steps = state.max_steps * args.gradient_accumulation_steps
            self.criterion = Implicit(self.problem, steps=steps)
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
        scores = scores_of(outputs["logits"] if isinstance(outputs, dict) else outputs[0])
        if self.criterion is None:  # evaluation without training
            self.criterion = Implicit(self.problem)
        loss: Tensor = self.criterion(scores, labels.reshape(-1))
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
        """For ``compute_metrics``: the goal's value, the rates and the best threshold."""
        scores, labels = _scores_and_labels(prediction)
        self.choice, status = best_choice(self.problem, scores, labels)
        found = {"goal": self.choice.value, "status": status, **self.choice.rates}
        found["threshold"] = [*self.choice.thresholds]
        if len(self.choice.thresholds) == 1:
            found["threshold"] = self.choice.thresholds[0]
        return scalars(found, "")

    def on_evaluate(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        """Put the threshold into the config: the next ``save_pretrained`` keeps it."""
        if self.choice.thresholds:
            more["model"].config.setpoint = {
                "goal": str(self.problem),
                "thresholds": [*self.choice.thresholds],
                "certified": False,
            }

    def on_save(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        """Save the criterion's state beside the checkpoint."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir() and self.criterion is not None:
            state_of = self.criterion.state_dict()
            save_file(
                {k: v.detach().cpu().contiguous() for k, v in state_of.items()}, folder / _STATE
            )

    def certify(
        self, trainer: Trainer, dataset: Any, *, confidence: float = 0.95, candidates: int = 1
    ) -> Certificate:
        """Certify a threshold on rows the model has not seen, and keep it in the config.

        Args:
            trainer: The Trainer, trained.
            dataset: Rows that neither trained nor chose the model.
            confidence: Of the certificate.
            candidates: From how many models this one was chosen by looking at these very rows.

        Raises:
            ValueError: The goal cannot be certified.
        """
        scores, labels = _scores_and_labels(trainer.predict(dataset))
        certificate, reason = try_certify(self.problem, scores, labels, confidence, candidates)
        if certificate is None:
            raise ValueError(f"No certificate: {reason}")
        kept: dict[str, Any] = {"goal": str(self.problem), "certified": certificate.certified}
        kept["thresholds"] = [certificate.threshold] if certificate.certified else []
        trainer.model.config.setpoint = {**kept, "certificate": certificate.to_json()}
        return certificate


def _scores_and_labels(prediction: Any) -> tuple[Tensor, Tensor]:
    """Scores and labels; of a model with several outputs the first are the logits."""
    logits = prediction.predictions
    scores = scores_of(torch.as_tensor(logits[0] if isinstance(logits, tuple) else logits))
    return scores, torch.as_tensor(prediction.label_ids).reshape(-1)


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
