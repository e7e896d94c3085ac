"""The models a run can hold: networks as safetensors, boosted trees as LightGBM's text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from setpoint.runs.folder import MODEL_FILES, Manifest, RunError, read_digested
from setpoint.train import network
from setpoint.train.boosted_trees import BoostedTrees


def build_model(kind: str, inputs: int, hidden: int, seed: int = 0, outputs: int = 1) -> nn.Module:
    """A linear model, or one hidden layer; the same start for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network(kind, inputs, hidden, outputs)


def model_bytes(model: nn.Module) -> bytes:
    """The content of the model's file."""
    if isinstance(model, BoostedTrees):
        return model.text.encode()
    tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    return save(tensors)


def load_model(folder: Path, manifest: Manifest) -> nn.Module:
    """The model of a run, in evaluation mode.

    Raises:
        RunError: The file is damaged, or does not fit the columns in run.json.
    """
    path = folder / MODEL_FILES[manifest.model]
    content = read_digested(folder, manifest, path.name)
    outputs = len(manifest.classes) or 1
    if manifest.model == "boosted":
        return _trees(path, content, manifest.encoder.width, outputs)
    found = _tensors(path, content)
    model = build_model(manifest.model, manifest.encoder.width, manifest.hidden, outputs=outputs)
    wanted = model.state_dict()
    shapes = {name: (tuple(t.shape), t.dtype) for name, t in found.items()}
    if shapes != {name: (tuple(t.shape), t.dtype) for name, t in wanted.items()}:
        raise RunError(f"{path} does not fit the columns and the model in run.json.")
    if not all(bool(torch.isfinite(t).all()) for t in found.values()):
        raise RunError(f"{path} holds weights that are not finite; train again.")
    model.load_state_dict(dict(found))
    return model.eval()


@torch.no_grad()
def score_rows(model: nn.Module, features: Any) -> Any:
    """Scores [n] (of several classes [n, K]) of features [n, d], float32, as numpy."""
    scores = model(torch.from_numpy(features)).to(torch.float32)
    return (scores if scores.ndim == 2 and scores.shape[1] > 1 else scores.reshape(-1)).numpy()


def _tensors(path: Path, content: bytes) -> Mapping[str, Tensor]:
    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError):
        raise RunError(f"{path} is damaged; train again.") from None


def _trees(path: Path, content: bytes, columns: int, outputs: int) -> BoostedTrees:
    """Trees that take so many columns and give so many scores."""
    try:
        model = BoostedTrees(content.decode())
        found = (model.booster.num_feature(), model.booster.num_model_per_iteration())
    except ModuleNotFoundError:
        raise
    except Exception:  # LightGBM has its own errors for text that it did not write
        raise RunError(f"{path} is damaged; train again.") from None
    if found != (columns, outputs):
        raise RunError(f"{path} does not fit the columns and the model in run.json.")
    return model.eval()
