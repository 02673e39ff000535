# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Wide nonlinear network: L hidden layers of width N to infinity, gradient descent on P points in D dimensions.

f = w . phi(h_L) / (gamma N), h_(l+1) = W_l phi(h_l) / sqrt(N), h_1 = V x / sqrt(D), all weights drawn with variance
sigma^2. A step moves every weight by -eta gamma^2 N times the gradient of the mean loss over the B points of its
batch, so that features change by an amount of order one at any width. B = P is full-batch descent; smaller B takes
shuffled batches without replacement, epoch after epoch. The probed matrices are W_l(T)^T W_l(T) / N for l = 1, ...,
L - 1.

Points are those of the teacher y = q(beta . x), q(a) = a + a^2/2, with x standard normal and |beta| = 1 (the sign of
beta . x for loss=cross_entropy), unless a file is given: data=FILE.npz with x (P by D) and y (P numbers) and
optionally order (T by B positions in them).
"""

from numerics.runtime.interface import DataOf, FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="wide_network",
    choices=(("L", 3), ("activation", "tanh"), ("loss", "square"), ("responses", "automatic")),
    declaration="b8a0b0ece50f3561",
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
        ObservableOf("loss", 0),
        ObservableOf("prediction", 0),
        ObservableOf("features1", 0),
        ObservableOf("features2", 0),
        ObservableOf("features3", 0),
        ObservableOf("gradients1", 0),
        ObservableOf("gradients2", 0),
        ObservableOf("gradients3", 0),
    ),
    fields=(
        FieldOf("V", "N", True, ("D",), True, None),
        FieldOf("w", "N", True, (), True, None),
        FieldOf("h1", "N", True, ("B",), True, None),
        FieldOf("phi1", "N", True, ("B",), True, None),
        FieldOf("J1_phi1", "N", True, ("B",), False, "phi1"),
        FieldOf("h2", "N", True, ("B",), True, None),
        FieldOf("phi2", "N", True, ("B",), True, None),
        FieldOf("J2_phi2", "N", True, ("B",), False, "phi2"),
        FieldOf("h3", "N", True, ("B",), True, None),
        FieldOf("phi3", "N", True, ("B",), True, None),
        FieldOf("pushed", "N", True, ("B",), True, None),
        FieldOf("g3", "N", True, ("B",), True, None),
        FieldOf("J2T_g3", "N", True, ("B",), False, "g3"),
        FieldOf("z2", "N", True, ("B",), True, None),
        FieldOf("g2", "N", True, ("B",), True, None),
        FieldOf("J1T_g2", "N", True, ("B",), False, "g2"),
        FieldOf("z1", "N", True, ("B",), True, None),
        FieldOf("g1", "N", True, ("B",), True, None),
        FieldOf("spike1", "N", True, ("B",), True, None),
        FieldOf("spike2", "N", True, ("B",), True, None),
        FieldOf("spike3", "N", True, ("B",), True, None),
        FieldOf("V0", "N", False, ("D",), True, None),
        FieldOf("w0", "N", False, (), True, None),
    ),
    exact=False,
    steps="T",
    labels=("D", "B"),
    endpoint=True,
    probes=(
        ProbeOf("1", "probe_1", "bulk_1", ""),
        ProbeOf("2", "probe_2", "bulk_2", ""),
    ),
)
