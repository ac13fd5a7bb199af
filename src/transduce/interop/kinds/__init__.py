"""What other people's models are called, and how each becomes ours: a file a family."""
