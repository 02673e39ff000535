"""The stages: each a function from one record to the next. No stage imports another, and none knows a setting."""
