"""From prepared pairs to weights: recipe, loss, loop, checkpoints, the run."""
