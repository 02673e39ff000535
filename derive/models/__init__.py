"""The settings that ship with the project: one declaration a file."""
