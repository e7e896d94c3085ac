"""Imported first by every room that trains: an error that names the extra if torch is missing."""

from setpoint._extras import optional

for library in ("torch", "safetensors"):
    optional(library)
