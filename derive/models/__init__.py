"""The settings that ship with the project, one declaration per file."""
