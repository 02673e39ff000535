"""The stages: each is a function from records to the next record. Stages do not import each other and do not refer to
particular settings."""
