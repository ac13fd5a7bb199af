"""What measurements share: numbers over seeds, tables for the log and for pages, the commit that was measured."""
