"""The certificate of a solution: checks that do not depend on how it was computed."""
