"""The command line: the only part that prints, parses arguments or exits."""
