"""The literature on which the steps of a derivation rest."""

from __future__ import annotations

REFERENCES = {
    "paper": (
        "C. Lauditi, C. Pehlevan and B. Bordelon, “Spectral Dynamics in Deep Networks: Feature Learning, Outlier "
        "Escape, and Learning Rate Transfer”, arXiv:2605.07870"
    ),
    "martin-siggia-rose": (
        "P. C. Martin, E. D. Siggia and H. A. Rose, “Statistical dynamics of classical systems”, Physical Review A 8, "
        "423 (1973)"
    ),
    "janssen": (
        "H.-K. Janssen, “On a Lagrangean for classical field dynamics and renormalization group calculations of "
        "dynamical critical properties”, Zeitschrift für Physik B 23, 377 (1976)"
    ),
    "de-dominicis": (
        "C. De Dominicis, “Dynamics as a substitute for replicas in systems with quenched random impurities”, Physical "
        "Review B 18, 4913 (1978)"
    ),
    "sompolinsky-zippelius": (
        "H. Sompolinsky and A. Zippelius, “Relaxational dynamics of the Edwards-Anderson model and the mean-field "
        "theory of spin-glasses”, Physical Review B 25, 6860 (1982)"
    ),
    "chaos": (
        "H. Sompolinsky, A. Crisanti and H. J. Sommers, “Chaos in random neural networks”, Physical Review Letters 61, "
        "259 (1988)"
    ),
    "stein": (
        "C. M. Stein, “Estimation of the mean of a multivariate normal distribution”, Annals of Statistics 9, 1135 "
        "(1981)"
    ),
    "baik-ben-arous-peche": (
        "J. Baik, G. Ben Arous and S. Péché, “Phase transition of the largest eigenvalue for nonnull complex sample "
        "covariance matrices”, Annals of Probability 33, 1643 (2005)"
    ),
    "benaych-georges-nadakuditi": (
        "F. Benaych-Georges and R. R. Nadakuditi, “The eigenvalues and eigenvectors of finite, low rank perturbations "
        "of large random matrices”, Advances in Mathematics 227, 494 (2011)"
    ),
    "potters-bouchaud": (
        "M. Potters and J.-P. Bouchaud, “A First Course in Random Matrix Theory”, Cambridge University Press (2020)"
    ),
}
"""By key: authors, title, place and year."""

CITED = {
    "result": ("paper",),
    "action": ("martin-siggia-rose", "janssen", "de-dominicis"),
    "average": ("de-dominicis",),
    "saddle-point": ("sompolinsky-zippelius", "chaos"),
    "projected": ("paper", "stein"),
    "a-of-z": ("baik-ben-arous-peche", "benaych-georges-nadakuditi"),
    "pencil": ("paper",),
    "bulk": ("potters-bouchaud",),
}
"""The literature that each chapter of a report cites."""
