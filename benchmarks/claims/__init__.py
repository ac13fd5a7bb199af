"""The paper's comparisons, measured at the size of a desk: cases, runs, timing, tables and the page."""
