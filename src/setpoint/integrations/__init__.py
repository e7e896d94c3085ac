"""Adapters for other training loops: one file each, imported only when it is asked for.

``setpoint.integrations.lightning``, ``.huggingface``, ``.boosting`` (XGBoost and LightGBM),
``.skorch``, ``.metrics`` (torchmetrics) and ``.shared`` (``scalars`` for TensorBoard and every
other logger). This package itself imports none of them.
"""
