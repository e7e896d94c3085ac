"""The study named beforehand: docs/study.md."""
