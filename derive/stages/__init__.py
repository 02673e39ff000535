"""The stages: each is a function from records to the next record. No stage imports another or names a setting."""
