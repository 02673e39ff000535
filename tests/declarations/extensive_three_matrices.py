"""The deep network with extensively many outputs at L = 2: two weight matrices and a readout, hidden layer 1 probed."""

from extensive_multilayer import declare

MODEL = declare(2, 1)
