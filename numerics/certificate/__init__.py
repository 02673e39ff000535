"""The certificate of a solution: checks that are independent of the way in which it was computed."""
