"""From text files to batches of ids, forward only: corpus, clean, prepare, shards, batches."""
