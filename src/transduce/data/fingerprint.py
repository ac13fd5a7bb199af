"""Whether what lies prepared is what would be prepared now."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["is_current"]


def is_current(summary: Path, fingerprint: str) -> bool:
    """Whether a summary is there, readable, and of this fingerprint."""
    try:
        return bool(json.loads(summary.read_text(encoding="utf-8"))["fingerprint"] == fingerprint)
    except (OSError, ValueError, KeyError, TypeError):
        return False
