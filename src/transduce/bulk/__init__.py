"""Large files translated in blocks, by many workers, on one machine or a cluster; stopped and taken up at any time."""

from transduce.bulk.run import BulkTranslation, Progress, Summary

__all__ = ["BulkTranslation", "Progress", "Summary"]
