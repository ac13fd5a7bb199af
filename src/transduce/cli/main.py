"""x."""


def main() -> None:
    """x."""
