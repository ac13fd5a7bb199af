"""Training: schedules so far."""
