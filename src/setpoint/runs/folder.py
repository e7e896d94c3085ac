"""Run folders: their files, and run.json, which says how the model was made.

run.json has a digest of every file beside it and of itself. The digests find files that were cut
short, mixed up or edited by hand. They are no signature: who can write the folder can write new
digests, so every field is checked as well. What LightGBM reads as its own text cannot be checked:
use runs with trees only from people you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setpoint._checks import positive
from setpoint._files import check_output_folder, write_folder
from setpoint.problems import Problem
from setpoint.tables import LabelNames
from setpoint.tables.features import Encoder, read_encoder

RUN_FILE, CERTIFICATE_FILE = "run.json", "certificate.json"
HISTORY_FILE, SCORES_FILE, REPORT_FILE = "history.jsonl", "scores.safetensors", "report.html"
MODEL_FILES = {
    "linear": "model.safetensors",
    "mlp": "model.safetensors",
    "boosted": "model.txt",  # LightGBM's own format
    "stacked": "model.safetensors",
}
"""The kinds of model, and the file of each."""
FILES = (
    *(RUN_FILE, CERTIFICATE_FILE, HISTORY_FILE, SCORES_FILE, REPORT_FILE),
    *dict.fromkeys(MODEL_FILES.values()),
)
LARGEST_JSON = 64 * 2**20
_FORMAT = "setpoint run 1"
_WIDEST = 100_000
_LONGEST_GOAL, _MOST_THRESHOLDS = 100_000, 10_000


class RunError(ValueError):
    """A run folder that must not be trusted."""


def check_free(folder: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """OutputError if a run cannot be written here.

    With ``force`` an earlier run is replaced; other files in the way, and what is read, are never
    removed.
    """
    check_output_folder(Path(os.path.realpath(folder)), FILES, force=force, inputs=inputs)


def write_run(folder: Path, files: Mapping[str, bytes], *, force: bool = False) -> None:
    """Write a run completely or not at all, in the place of an older one only with ``force``."""
    write_folder(Path(os.path.realpath(folder)), files, also=FILES, force=force)


def read_file(folder: Path, name: str, *, largest: int | None = None) -> bytes:
    """The content of one file of a run.

    Raises:
        RunError: It is missing, longer than ``largest``, or no plain file inside the folder.
    """
    path = folder / name
    if name not in FILES:
        raise RunError(f"{folder}: {name!r} is not a file of a run.")
    # O_NOFOLLOW and a look at the open file: nothing can be put in its place in between.
    # O_NONBLOCK: a pipe in place of a file must not hang us.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise RunError(f"{path} is missing: {folder} is not a complete run folder.") from None
    except OSError as error:
        reason = "it is a link, and a run has none" if path.is_symlink() else error.strerror
        raise RunError(f"{path} cannot be read: {reason}.") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise RunError(f"{path} is not a plain file.")
    with os.fdopen(handle, "rb") as file:
        if largest is not None and status.st_size > largest:
            raise RunError(f"{path} is {status.st_size:,} bytes long, more than a run writes.")
        return file.read()


def digested_files(model: str) -> set[str]:
    """The files of which run.json has a digest, for a kind of model."""
    return {CERTIFICATE_FILE, HISTORY_FILE, SCORES_FILE, MODEL_FILES[model]}


def digest(content: bytes) -> str:
    """The SHA-256 of a file."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def read_digested(folder: Path, manifest: Manifest, name: str) -> bytes:
    """A file of the run, if it is the one that was written with run.json."""
    content = read_file(folder, name)
    if digest(content) != manifest.files.get(name):
        raise RunError(f"{folder / name} is damaged or was changed after the run was written.")
    return content


@dataclass(frozen=True)
class Manifest:
    """What run.json holds."""

    goal: str
    label: str
    negative: str
    positive: str
    method: str
    model: str
    hidden: int
    seed: int
    created: str
    encoder: Encoder
    group: str | None = None
    classes: tuple[str, ...] = ()
    """What the columns of the scores are called, if the goal is about several classes."""
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    """What the page calls a positive, the others and the action, if that was said."""
    costs: tuple[float, float] | None = None
    """What a miss and a false alarm cost, if that was said."""

    @property
    def label_names(self) -> LabelNames:
        """The classes of the label column; of two, the negative one first."""
        return LabelNames(self.classes or (self.negative, self.positive))

    def to_bytes(self) -> bytes:
        """The content of run.json, with a digest of itself."""
        content = {name: getattr(self, name) for name in _FIELDS}
        content["classes"] = list(self.classes)
        content |= {"words": dict(self.words), "costs": self.costs and list(self.costs)}
        content |= {"format": _FORMAT, "columns": self.encoder.to_json(), "notes": list(self.notes)}
        content["digest"] = _digest(content)
        return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


_TEXTS = ("goal", "label", "negative", "positive", "method", "model", "created")
_FIELDS = (*_TEXTS, "hidden", "seed", "group", "versions", "files")


def read_manifest(folder: Path) -> Manifest:
    """run.json of a folder, every field checked.

    Raises:
        RunError: There is none, or it is not as it was written.
    """
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise RunError(f"{folder} {what}; name a folder that `setpoint train` wrote.")
    path = folder / RUN_FILE
    text = read_file(folder, RUN_FILE, largest=LARGEST_JSON)
    try:
        content = json.loads(text.decode(), parse_constant=_no_constant)
        json.dumps(content, ensure_ascii=False).encode()  # no half characters, such as "\ud800"
    except (ValueError, RecursionError):
        raise RunError(f"{path} is not JSON; the run is damaged.") from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise RunError(f"{path} is not a run of this version of setpoint ({_FORMAT!r}).")
    if content.pop("digest", None) != _digest(content):
        raise RunError(f"{path} was changed after it was written; train again.")
    try:
        return _checked(content)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        missing = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise RunError(f"{path} is not a valid run: {' '.join(missing.split())[:200]}") from None


def _checked(content: dict[str, Any]) -> Manifest:
    for name in _TEXTS:
        if not isinstance(content[name], str):
            raise ValueError(f"{name} must be a text.")
    for name, least, most in (("hidden", 0, _WIDEST), ("seed", 0, 2**63)):
        if type(content[name]) is not int or not least <= content[name] < most:
            raise ValueError(f"{name} must be a whole number.")
    if content["model"] not in MODEL_FILES:
        raise ValueError(f"model must be one of {', '.join(MODEL_FILES)}.")
    if len(content["goal"]) > _LONGEST_GOAL:
        raise ValueError(
            f"goal has {len(content['goal']):,} characters; {_LONGEST_GOAL:,} at most."
        )
    if content["group"] is not None and not isinstance(content["group"], str):
        raise ValueError("group must be a column.")
    if not isinstance(content["notes"], list) or not _texts(content["notes"]):
        raise ValueError("notes must be texts.")
    for name in ("versions", "files"):
        given = content[name]
        if not isinstance(given, dict) or not _texts(given.values()):
            raise ValueError(f"{name} must be texts by name.")
    wanted = digested_files(content["model"])
    if set(content["files"]) != wanted:
        raise ValueError(f"files must be {', '.join(sorted(wanted))} and nothing else.")
    classes = content.get("classes", [])  # runs of older versions have two, and no such field
    if not isinstance(classes, list) or not _texts(classes) or len(set(classes)) < len(classes):
        raise ValueError("classes must be texts, all different.")
    problem = Problem.parse(content["goal"])
    if isinstance(problem.thresholds, int) and problem.thresholds > _MOST_THRESHOLDS:
        raise ValueError(f"goal has {problem.thresholds:,} thresholds.")
    several = problem.kind == "classes"
    if several != (len(classes) >= 2) or len(classes) > _WIDEST:
        raise ValueError("classes must be those of a goal about classes, or none.")
    encoder = read_encoder(content["columns"])
    if encoder.width > _WIDEST:
        raise ValueError(f"columns make {encoder.width:,} features, {_WIDEST:,} at most.")
    fields = {name: content[name] for name in _FIELDS}
    notes = tuple(content["notes"])
    fields |= _page_words(content.get("words", {}), content.get("costs"))
    return Manifest(**fields, encoder=encoder, classes=tuple(classes), notes=notes)


def _page_words(words: Any, costs: Any) -> dict[str, Any]:
    """The words and costs of the task; runs of older versions have none."""
    named = isinstance(words, dict) and set(words) <= {"positive", "negative", "action"}
    if not named or not _texts(words.values()):
        raise ValueError("words must be texts: positive, negative, action.")
    if costs is None:
        return {"words": words}
    miss, alarm = costs
    return {"words": words, "costs": (positive(miss, "costs"), positive(alarm, "costs"))}


def _texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _digest(content: Mapping[str, Any]) -> str:
    return digest(json.dumps(content, sort_keys=True, ensure_ascii=True, default=dict).encode())


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
