# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Linear regression by gradient descent on inputs whose covariance has a spectrum; P = alpha D samples.

An input has the entries sqrt(lam_i) z_i with z normal, and y = sum_i sqrt(lam_i) z_i teacher_i / sqrt(D) + sigma noise
is learned by w with rate eta, momentum mu and weight decay ridge, from w = 0, on one set of samples (batch=full), on
fresh ones at each step (batch=online), or on mini-batches of one set (batch=mini): each step uses a random fraction
beta of the samples, drawn without replacement. The variances lam are all one (spectrum=isotropic), kappa for a fraction
of the sites and one for the others (two_groups), those of an array `variances` of K numbers (given), or between cut and
1 with the density lam^(-1 - 1/decay) (power_law): sorted, they decay like k^(-decay). The teacher then has the variance
lam^source.

With hessian=yes inputs have one additional random direction of variance spike, and the spectrum of the curvature X^T X
/ P of the loss is computed, where the rows of X are the training samples: its bulk and, if spike is large enough, an
outlier. With batch=online or a power law they are P independent samples, which have the same spectrum because inputs
are not learned.

u is the part of the teacher that has not been learned, weighted by the standard deviations of the inputs; delta are the
errors on the samples; h is the correlation of z with the errors used in a step. For a large batch the test loss of a
power law decays at late times like t^(1/decay - 1 - source) until the cutoff is reached.
"""

import numpy as np

from numerics.runtime.interface import Demand, FieldOf, ObservableOf, ParameterOf, Setting
from numerics.runtime.traits import discrete, extent

SETTING = Setting(
    name="structured_regression",
    choices=(("spectrum", "two_groups"), ("batch", "full"), ("hessian", "no")),
    declaration="90190e47254646f0",
    parameters=(
        ParameterOf("alpha", 2.0, False),
        ParameterOf("eta", 0.2, False),
        ParameterOf("sigma", 0.3, False),
        ParameterOf("ridge", 0.0, False),
        ParameterOf("mu", 0.0, False),
        ParameterOf("T", 30, True),
        ParameterOf("kappa", 4.0, False),
        ParameterOf("share", 0.25, False),
    ),
    data=(),
    observables=(
        ObservableOf("train_loss", 0),
        ObservableOf("test_loss", 0),
        ObservableOf("distance", 0),
    ),
    fields=(
        FieldOf("w", "D", True, (), True, None),
        FieldOf("u", "D", True, (), True, None),
        FieldOf("Z_u", "P", True, (), False, "u"),
        FieldOf("delta", "P", True, (), True, None),
        FieldOf("h", "D", True, (), True, "delta"),
        FieldOf("eps", "P", False, (), True, None),
        FieldOf("teacher", "D", False, (), True, None),
    ),
    exact=True,
    steps="T",
    labels=(),
    endpoint=True,
    probes=(),
    demands=(
        Demand("a weight of trait lam", lambda p: 1 - p.share, "not negative"),
        Demand(
            "the largest size of sqrt(lam) over the sites",
            lambda p: extent(lambda x0: np.sqrt(x0), discrete((1, p.kappa), (1 - p.share, p.share), np)),
            "finite",
        ),
    ),
)
