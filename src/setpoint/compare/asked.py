"""Which methods and which splits a comparison was asked for, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral

from setpoint._checks import whole
from setpoint.compare.cells import Members
from setpoint.solvers import Method, methods_named

OWN = 'For one of your own pass {"mine": Method(lambda problem, steps: ...)}.'


def checked_methods(methods: object) -> dict[str, Members]:
    """Methods by their names, or methods of one's own."""
    chosen: dict[str, Members] = {}
    if isinstance(methods, Mapping):
        for name, method in methods.items():
            if not isinstance(name, str):
                raise TypeError(f"Methods have names, which are strings; got {name!r}.")
            if not isinstance(method, Method):
                raise TypeError(
                    f"The method {name!r} must be a Method; got {type(method).__name__}. Every "
                    f'split needs a new one: pass {{"{name}": Method(lambda problem, steps: ...)}}.'
                )
            chosen[name] = {name: method}
    elif isinstance(methods, Iterable):
        for name in [methods] if isinstance(methods, str) else methods:
            if not isinstance(name, str):
                raise TypeError(f"A list of methods has names; got {_shown(name)} in it. {OWN}")
            methods_named(name)
            chosen[name] = name
    else:
        raise TypeError(
            'methods must be names, as in ["cross_entropy", "implicit"]; '
            f"got {_shown(methods)}. {OWN}"
        )
    if not chosen:
        raise ValueError("compare needs at least one method.")
    return chosen


def checked_seeds(seeds: object) -> list[int]:
    """So many splits, or those that are listed."""
    if isinstance(seeds, Integral):
        return list(range(whole(seeds, "seeds", least=1)))
    listed = list(seeds) if isinstance(seeds, Iterable) else [seeds]
    if not listed:
        raise ValueError("seeds must name at least one split; got an empty list.")
    if not isinstance(seeds, Iterable) or not all(isinstance(one, Integral) for one in listed):
        raise TypeError(f"seeds must be a whole number, or a list of them; got {seeds!r}.")
    return [whole(one, "seeds", least=0) for one in listed]


def _shown(value: object) -> str:
    return repr(value) if len(repr(value)) <= 60 else type(value).__name__
