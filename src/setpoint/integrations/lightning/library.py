"""Lightning under either of its names: the package ``lightning``, or ``pytorch_lightning``."""

from setpoint.integrations.extras import advice

try:
    import lightning.pytorch as pl
except ImportError:
    try:
        import pytorch_lightning as pl
    except ModuleNotFoundError as missing:
        raise advice(missing, "lightning") from None

__all__ = ["pl"]
