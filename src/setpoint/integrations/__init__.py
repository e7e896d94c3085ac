"""Other people's training loops: one thin file each, imported only when it is asked for.

``setpoint.integrations.lightning``, ``.huggingface``, ``.boosting`` (XGBoost and LightGBM),
``.skorch``, ``.metrics`` (torchmetrics) and ``.scalars`` (TensorBoard and every other logger). This
package itself imports none of them.
"""
