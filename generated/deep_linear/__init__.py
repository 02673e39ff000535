# Written by `derive build deep_linear L=2 data=full_batch param=mup spectrum=isotropic kernel=shift teachers=alike` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Deep linear network in the proportional limit: L layers of width N = nu D, P = alpha D samples, C outputs.

f_c(x) = sqrt(D) / (N gamma0) w_c . W(L-1) ... W1 W0 x / (sqrt(N)^(L-1) sqrt(D)) learns y_c = teacher_c . x / sqrt(D)
+ sigma noise by gradient descent with rate eta, either on one set of samples (data=full_batch) or on B = alpha D
fresh ones at each step (data=online). Layer 0 is W0, of N x D entries; layers 1 ... L-1 are square. All entries start
as independent standard normal variables. The spectra are those of W^T W / N after T steps, one per layer.

A step changes v by -eta B h0, where B = sum_k <g(k+1)^2> H_k^T H_k is the population core of the neural tangent kernel
(layer ntk): H_k = W(k-1) ... W0 / sqrt(N)^k, H_0 = 1, and <g(L+1)^2> = 1. For L = 1 it is W0^T W0 / N plus
the mean square of the readout, and is always computed (kernel=shift); kernel=core computes it at any depth.
kernel=sample also computes the kernel of the training inputs x, x B x^T / D (layer sample): a step on all samples
changes delta by -eta/alpha times this matrix applied to delta, and overshoots if eta times its largest eigenvalue
exceeds 2 alpha. Mean squares are averaged over classes as well: equivalent teachers have one kernel. With
teachers=given the array `classes` contains the weight of each class in the mean squares, by default 1/C:
classes=[0,1,0] gives the kernel of the second class of three, which differs from the others.

v is the part of the teacher that the network has not learned, delta the errors on the samples, h0 their correlation
with the inputs, h(k+1) the forward and g(k) the backward fields. With param=ntk the output is divided by gamma0
sqrt(N), and the learning rate does not grow with the width. This amounts to gamma0 / sqrt(nu) in place of gamma0: wide
networks are lazy.

The C teachers are orthogonal and of unit length (teachers=alike), or they have lengths strengths[c] sqrt(gram[c][c])
and scalar products strengths[a] strengths[b] gram[a][b], in units of D (teachers=given); gram is a positive
semidefinite table.
Different teachers give different outliers.

The variances lam of the inputs are all one (spectrum=isotropic), kappa for a fraction of the inputs and one for the
others (two_groups), or between cut and 1 with the density lam^(-1 - 1/decay) (power_law): sorted, they decay like
k^(-decay).
"""

from numerics.runtime.interface import FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="deep_linear",
    choices=(
        ("L", 2),
        ("data", "full_batch"),
        ("param", "mup"),
        ("spectrum", "isotropic"),
        ("kernel", "shift"),
        ("teachers", "alike"),
    ),
    declaration="c943465d342f2c7c",
    parameters=(
        ParameterOf("alpha", 2.0, False),
        ParameterOf("nu", 1.0, False),
        ParameterOf("gamma0", 3.0, False),
        ParameterOf("eta", 0.05, False),
        ParameterOf("sigma", 0.3, False),
        ParameterOf("T", 30, True),
        ParameterOf("C", 1, True),
    ),
    data=(),
    observables=(
        ObservableOf("train_loss", 0),
        ObservableOf("test_loss", 0),
    ),
    fields=(
        FieldOf("g2", "N2", True, ("C",), True, None),
        FieldOf("J1T_g2", "N1", True, ("C",), False, "g2"),
        FieldOf("g1", "N1", True, ("C",), True, None),
        FieldOf("J0T_g1", "D", True, ("C",), False, "g1"),
        FieldOf("v", "D", True, ("C",), True, None),
        FieldOf("X_v", "P", True, ("C",), False, "v"),
        FieldOf("delta", "P", True, ("C",), True, None),
        FieldOf("h0", "D", True, ("C",), True, "delta"),
        FieldOf("J0_h0", "N1", True, ("C",), False, "h0"),
        FieldOf("h1", "N1", True, ("C",), True, None),
        FieldOf("J1_h1", "N2", True, ("C",), False, "h1"),
        FieldOf("h2", "N2", True, ("C",), True, None),
        FieldOf("eps", "P", False, ("C",), True, None),
        FieldOf("readout", "N2", False, ("C",), True, None),
        FieldOf("teacher", "D", False, ("C",), True, None),
    ),
    exact=True,
    steps="T",
    labels=("C",),
    endpoint=True,
    probes=(
        ProbeOf("0", "probe_0", "bulk_0", ""),
        ProbeOf("1", "probe_1", "bulk_1", ""),
    ),
)
