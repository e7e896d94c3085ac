"""One training run: its steps, its passes, and where it left off."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from setpoint.distributed import rank_of
from setpoint.solvers.samplers import Batch
from setpoint.train.checkpoints import OtherRun, load_checkpoint, save_checkpoint
from setpoint.train.groups import of_rows
from setpoint.train.state import Progress, State
from setpoint.train.team import Team, from_first
from setpoint.train.validation import Validation


class Data(NamedTuple):
    """All examples: features, labels, weights and group columns, or None."""

    x: Tensor
    y: Tensor
    weights: Tensor | None = None
    groups: dict[str, Any] | Any = None


@dataclass
class Run:
    """A run in progress; :func:`setpoint.train.fit` drives it."""

    state: State
    team: Team
    data: Data
    validation: Validation | None
    patience: int | None
    folder: Path | None
    recipe: dict[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    seconds: list[float] = field(default_factory=list)
    losses: list[Tensor] = field(default_factory=list)
    note: str = ""

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one of this very run."""
        if self.folder is None:
            return
        found = from_first(load_checkpoint(self.folder) if rank_of() == 0 else None)
        if found is None:
            return
        tensors, record = found
        if record.get("recipe") != self.recipe:
            was = {k: v for k, v in record.get("recipe", {}).items() if self.recipe.get(k) != v}
            raise OtherRun(
                f"The checkpoint in {self.folder} is of another run (it had {was}). "
                "Use another folder, or delete it."
            )
        self.state.restore(tensors)
        self.progress = Progress(**record["progress"])

    def step(self, batch: Batch) -> Tensor:
        """Train on one batch; returns its loss."""
        start = perf_counter()
        batch = self.team.own(batch)
        x, y, weights, groups = self.data
        rows = batch.rows.to(x.device)
        options = self._weighed(
            batch.weights, None if weights is None else weights[rows].to(x.device)
        )
        if groups is not None and _takes("groups", self.state.criterion):
            options["groups"] = of_rows(groups, batch.rows)
        scores = self.team.model(x[rows]).squeeze(-1)
        loss = self.team.criterion(scores, y[rows], **options)
        self.state.optimizer.zero_grad()
        loss.backward()
        self.state.optimizer.step()
        if self.state.average is not None:
            self.state.average.update()
        self.seconds.append(perf_counter() - start)
        self.losses.append(loss.detach())
        self.progress.step += 1
        return cast(Tensor, loss.detach())

    def _weighed(self, drawn: Tensor | None, own: Tensor | None) -> dict[str, Tensor]:
        """Weights of the sampler and of the examples, apart where the criterion takes them so."""
        if drawn is not None:
            drawn = drawn.to(self.data.x.device)
            if _takes("resampling", self.state.criterion):
                return {"resampling": drawn} | ({} if own is None else {"weights": own})
            own = drawn if own is None else drawn * own
        return {} if own is None else {"weights": own}

    def end_of_pass(self, *, last: bool) -> None:
        """Judge the model, write history, keep the best weights, and checkpoint."""
        done = self.progress
        epoch = len(done.history) + 1
        value, trouble = None, ""
        if self.validation is not None:
            value, trouble = self.validation.metric(self._current())
            if self.validation.better(value, done.best):
                done.best, done.best_epoch = value, epoch
                current = self._current().state_dict()
                self.state.best = {name: t.detach().clone() for name, t in current.items()}
        done.history.append(
            {
                "epoch": epoch,
                "step": done.step,
                "loss": float(torch.stack(self.losses).mean()),
                "validation": value,
                "seconds": sum(self.seconds[-len(self.losses) :]),
                "status": trouble or str(getattr(self.state.criterion, "status", "")),
            }
        )
        self.losses = []
        self.note = "" if value is None else f"validation {value:.4g}"
        waited = epoch - (done.best_epoch or 0)
        done.finished = last or (self.patience is not None and waited >= self.patience)
        if self.folder is not None and rank_of() == 0:
            record = {"recipe": self.recipe, "progress": asdict(done)}
            save_checkpoint(self.folder, self.state.tensors(), record)

    def result(self) -> nn.Module:
        """The best model there was, in evaluation mode."""
        model = self._current()
        if self.state.best:
            model.load_state_dict(self.state.best)
        return model.eval()

    def _current(self) -> nn.Module:
        average = self.state.average
        return self.state.model if average is None else average.module


def _takes(keyword: str, criterion: object) -> bool:
    call = criterion.forward if isinstance(criterion, nn.Module) else criterion
    return keyword in signature(cast(Any, call)).parameters
