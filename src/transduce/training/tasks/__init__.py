"""What can be learned: one module a task, each a `transduce.training.task.Task`."""
