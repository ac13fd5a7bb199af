"""An experiment: recipes that differ in a few settings, trained and measured alike on one corpus."""
