"""Other people's tools behind one face: ``build(metric, labels)`` gives a loss of scores.

Each is imported only when it is asked for: they live in an environment of their own
(requirements-peers.txt). What a tool prepares once for a shape is done in ``build`` and not timed.
"""
