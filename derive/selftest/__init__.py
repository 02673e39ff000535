"""Laws that every declaration must obey, tested on random declarations.

A draft is a declaration as plain data. It is written to a file, passed to the engine, and compared with a partner that
must give the same numbers: the same model with other names, with a subexpression as a field, with a Gaussian matrix as
the sum of two. Nothing here depends on how the engine works; `engine` is the only interface to it.
"""
