# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Wide nonlinear network: L hidden layers of width N to infinity, gradient descent on P points in D dimensions.

f = w . phi(h_L) / (gamma N), h_(l+1) = W_l phi(h_l) / sqrt(N), h_1 = V x / sqrt(D), all weights drawn with variance
sigma^2. A step moves every weight by -eta gamma^2 N times the gradient of the mean loss over the B points of its
batch, so that features change at order one however wide the network is. B = P is full-batch descent; smaller B takes
shuffled batches without replacement, epoch after epoch. The probed matrices are W_l(T)^T W_l(T) / N for l = 1, ...,
L - 1.

Points are those of the teacher y = q(beta . x), q(a) = a + a^2/2, with x standard normal and |beta| = 1 (the sign of
beta . x for loss=cross_entropy), unless a file is given: data=FILE.npz with x (P by D) and y (P numbers) and, if
wanted, order (T by B positions in them).
"""

from numerics.runtime.interface import DataOf, ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="wide_network",
    choices=(("L", 3), ("activation", "tanh"), ("loss", "square"), ("responses", "automatic")),
    declaration="d2a47fac802ff925",
    parameters=(
        ParameterOf("gamma", 2.5, False),
        ParameterOf("eta", 0.1, False),
        ParameterOf("sigma", 1.0, False),
        ParameterOf("P", 10, True),
        ParameterOf("D", 10, True),
        ParameterOf("B", 10, True),
        ParameterOf("T", 20, True),
        ParameterOf("draw", 0, True),
    ),
    data=(
        DataOf("x", ("times", "B", "D")),
        DataOf("y", ("times", "B")),
    ),
    observables=(
        "loss",
        "prediction",
        "features1",
        "features2",
        "features3",
        "gradients1",
        "gradients2",
        "gradients3",
    ),
    exact=False,
    steps="T",
    labels="B",
    endpoint=True,
    probes=(
        ProbeOf("1", "probe_1", "bulk_1", ""),
        ProbeOf("2", "probe_2", "bulk_2", ""),
    ),
)
