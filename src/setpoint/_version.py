"""The version of setpoint, and those of what its numbers are made with."""

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """The versions that the numbers of a training run are made with."""
    from importlib.metadata import version
    from platform import python_version

    packages = {name: version(name) for name in ("torch", "numpy")}
    return {"setpoint": __version__, **packages, "python": python_version()}
