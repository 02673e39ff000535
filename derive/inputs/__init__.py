"""Inputs of a computation: declarations, values of parameters, data files and checkpoints."""
