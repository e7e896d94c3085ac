"""Every method on the same problem, and the libraries that others wrote for it.

What needs no peer runs in the project's own environment, the rest in that of
requirements-peers.txt.
"""
