"""All attacks by name; the seeds of a case are its name and its number."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from random import Random

import torch
from attacks import arrays, crashes, documents, goals, signals, tables

ATTACKS: dict[str, Callable[[Random], None]] = {
    "goals: read back": goals.reads_back,
    "goals: spoilt": goals.spoilt,
    "goals: long": goals.long,
    "goals: choice": goals.choice,
    "documents: certificate": documents.certificate,
    "documents: manifest": documents.manifest,
    "documents: text": documents.text,
    "documents: other": documents.other,
    "arrays: containers": arrays.containers,
    "arrays: refused": arrays.refused,
    "arrays: certified": arrays.certified,
    "arrays: criteria": arrays.criteria,
    "arrays: models": arrays.models,
    "arrays: odd tensors": arrays.odd_tensors,
    "arrays: names": arrays.names,
    "tables: formats": tables.formats,
    "tables: damaged": tables.damaged,
    "tables: columns": tables.columns,
    "tables: cells": tables.cells,
    "tables: monsters": tables.monsters,
    "files: crash": crashes.crash,
    "signals: interrupt": signals.interrupt,
}


def run(name: str, numbers: Iterable[int], most: int = 1) -> tuple[int, list[str]]:
    """How many cases were run, and what was found: the first ``most``, with their numbers."""
    found: list[str] = []
    count = 0
    for number in numbers:
        count += 1
        torch.manual_seed(number)
        try:
            ATTACKS[name](Random(f"{name} {number}"))
        except Exception:
            found.append(f"{name}, case {number}\n{traceback.format_exc()}")
            if len(found) >= most:
                break
    return count, found
