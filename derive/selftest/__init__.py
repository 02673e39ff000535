"""Laws that every declaration must obey, tried on declarations drawn at random.

A draft is a declaration as plain data. It is written out as a file, given to the engine like any other, and compared
with a partner that must have the same numbers: the same model under other names, with an intermediate named, with one
Gaussian matrix as the sum of two. Nothing in here knows how the engine works; what it uses of it is in `engine`.
"""
