"""The names exported by `import derive`, and the modules that define them. Nothing is imported here."""

LANGUAGE = {
    "derive.language.symbols": (
        "Domain",
        "axis",
        "nonnegative",
        "parameter",
        "positive",
        "real",
        "sectors",
        "training_clock",
        "whole_nonnegative",
        "whole_positive",
    ),
    "derive.language.alignments": ("alignment",),
    "derive.language.vectors": (
        "each",
        "field",
        "fields",
        "mean",
        "normal",
        "overlap",
        "past_sum",
        "relabel",
        "softmax",
        "total",
    ),
    "derive.language.data": ("data", "entries", "root"),
    "derive.language.traits": ("trait",),
    "derive.language.laws": (
        "discrete",
        "drawn",
        "exponential",
        "half_normal",
        "log_normal",
        "mixture",
        "normal_law",
        "uniform",
    ),
    "derive.language.diagonals": ("diag",),
    "derive.language.matrices": ("gaussian", "goe", "outer", "weights"),
    "derive.language.equations": ("Eq", "spectrum"),
    "derive.language.model": ("Model",),
    "derive.language.family": ("family", "formula", "one_of", "whole_choice"),
}
VERBS = {
    "derive.api.loading": ("load",),
    "derive.api.spectra": ("spectra",),
    "derive.api.theory": ("Theory",),
    "derive.results.check": ("Check",),
    "derive.results.comparison": ("Comparison", "compare"),
    "derive.results.files": ("open",),
    "derive.results.simulation": ("Simulation",),
    "derive.results.solution": ("Solution",),
    "derive.results.spectra": ("Spectra",),
    "derive.results.sweep": ("Sweep",),
}
UNDER = {"open": "open_result"}
"""Names that would shadow Python built-ins in the module that defines them."""
WORDS = tuple(sorted(word for words in LANGUAGE.values() for word in words))
"""The words of the language, for declarations."""
