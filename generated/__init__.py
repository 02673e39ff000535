"""Solvers written by `derive build`, one package a setting: change the declaration and build again."""
