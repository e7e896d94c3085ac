"""Who shares a threshold: everyone, a group, a class or a query. Never torch at import time."""
