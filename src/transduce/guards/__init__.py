"""What users can rely on: nothing runs away or repeats itself, and what must survive a translation does."""

from transduce.guards.glossary import Glossary

__all__ = ["Glossary"]
