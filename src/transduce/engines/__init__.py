"""Ids in, hypotheses out: the ways to run a model, behind one protocol."""
