"""Lightning under either of its names: the package ``lightning``, or ``pytorch_lightning``."""

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

__all__ = ["pl"]
