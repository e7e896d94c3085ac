"""The models a run can hold: networks and stacks as safetensors, boosted trees as LightGBM's text.

Trees of a stack are LightGBM's text too, as the bytes of a tensor.
"""

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
from setpoint.train.boosted_trees import MODELS, BoostedTrees
from setpoint.train.cross_fitting import FOLDS
from setpoint.train.stacking import STACKED, Stacked

_MEMBERS = [
    name for kind in MODELS for name in (kind, *(f"{kind}_{fold}" for fold in range(FOLDS)))
]
"""What the members of a stack may be called, in their order."""


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
    for name, member in model.named_modules():
        if isinstance(member, BoostedTrees):
            text = bytearray(member.text.encode())
            tensors[f"{name}.text"] = torch.frombuffer(text, dtype=torch.uint8)
    return save(tensors)


def load_model(folder: Path, manifest: Manifest) -> nn.Module:
    """The model of a run, in evaluation mode.

    Raises:
        RunError: The file is damaged, or does not fit the columns in run.json.
    """
    path = folder / MODEL_FILES[manifest.model]
    content = read_digested(folder, manifest, path.name)
    if manifest.model == "boosted":
        return _trees(path, content, manifest)
    found = _tensors(path, content)
    if manifest.model == STACKED:
        return _stacked(path, found, manifest)
    return _network(path, manifest.model, found, manifest)


def _network(path: Path, kind: str, found: Mapping[str, Tensor], manifest: Manifest) -> nn.Module:
    """A network with these weights."""
    columns, outputs = manifest.encoder.width, len(manifest.classes) or 1
    model = build_model(kind, columns, manifest.hidden, outputs=outputs)
    _check_tensors(path, found, model.state_dict())
    model.load_state_dict(dict(found))
    return model.eval()


def _stacked(path: Path, found: Mapping[str, Tensor], manifest: Manifest) -> Stacked:
    """A weighted sum of the models whose tensors are there."""
    members: dict[str, nn.Module] = {}
    for name in _MEMBERS:
        start, kind = f"members.{name}.", name.split("_")[0]
        own = {key[len(start) :]: t for key, t in found.items() if key.startswith(start)}
        if kind == "boosted" and own.keys() == {"text"}:
            members[name] = _trees(path, own["text"].numpy().tobytes(), manifest)
        elif own:
            members[name] = _network(path, kind, own, manifest)
    rest = {name: t for name, t in found.items() if not name.startswith("members.")}
    empty = Stacked(members, [0.0] * len(members), [0.0] * (len(manifest.classes) or 1))
    _check_tensors(path, rest, {name: getattr(empty, name) for name in ("weights", "shift")})
    return Stacked(members, rest["weights"], rest["shift"]).eval()


def _check_tensors(path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """RunError unless the tensors have the names, shapes and types wanted, and are finite."""
    shapes = {name: (tuple(t.shape), t.dtype) for name, t in found.items()}
    if shapes != {name: (tuple(t.shape), t.dtype) for name, t in wanted.items()}:
        raise RunError(f"{path} does not fit the columns and the model in run.json.")
    if not all(bool(torch.isfinite(t).all()) for t in found.values()):
        raise RunError(f"{path} holds weights that are not finite; train again.")


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


def _trees(path: Path, content: bytes, manifest: Manifest) -> BoostedTrees:
    """Trees that take the columns of the run and give its scores."""
    try:
        model = BoostedTrees(content.decode())
        found = (model.booster.num_feature(), model.booster.num_model_per_iteration())
    except ModuleNotFoundError:
        raise
    except Exception:  # LightGBM has its own errors for text that it did not write
        raise RunError(f"{path} is damaged; train again.") from None
    if found != (manifest.encoder.width, len(manifest.classes) or 1):
        raise RunError(f"{path} does not fit the columns and the model in run.json.")
    return model.eval()
