"""Doors to other people's tools: models out, and in."""
