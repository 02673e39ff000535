"""Statistics of a compiled program, read from the text of XLA's optimised HLO."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

NO_KERNEL = frozenset(
    "parameter constant tuple get-tuple-element bitcast while conditional call after-all opt-barrier partition-id "
    "replica-id async-start async-update async-done copy-done domain".split()
)
"""Instructions that start no kernel by themselves."""
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-")
ON_DEVICE = ("__cublas", "cublas", "cusolver", "__cudnn", "cu_", "cuda_", "__gpu$", "__triton", "TopK")
"""Prefixes of the names of custom calls to libraries of the device. Any other counts as a call to the host."""
WORKSPACE = "s8"
"""Type of the workspace arrays of libraries."""
_HEAD = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{\s*$")
_LINE = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?P<shape>.*?) (?P<op>[a-z][\w\-]*)\((?P<rest>.*)$")
_CALLED = re.compile(r"(body|condition|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_ARRAY = re.compile(r"\b(pred|[suf]\d+|bf16|c\d+)\[([\d,]*)\]")


@dataclass(frozen=True)
class CompiledLoop:
    """A loop of a compiled program.

    trips: number of iterations; None if the loop ends at a condition. kernels: kernels launched in one iteration,
        without those of inner loops. entries: total size of the largest result of each of these kernels. loops: the
        loops nested inside this one.
    """

    trips: int | None
    kernels: int
    entries: int
    loops: tuple[CompiledLoop, ...] = ()

    @property
    def per_step(self) -> int:
        """Kernels in one iteration; inner loops that end at a condition count once."""
        return self.kernels + sum((loop.trips or 1) * loop.per_step for loop in self.loops)

    @property
    def width(self) -> float:
        """Mean size of the largest result of the kernels of one iteration, in entries."""
        return sum(n for n, _ in self._weighed) / max(1, sum(n for _, n in self._weighed))

    @property
    def _weighed(self) -> tuple[tuple[int, int], ...]:
        """Number of entries and of kernels in one iteration of this loop, including all inner loops."""
        inner = [
            ((loop.trips or 1) * entries, (loop.trips or 1) * kernels)
            for loop in self.loops
            for entries, kernels in loop._weighed
        ]
        return ((self.entries, self.kernels), *inner)

    @property
    def bounded(self) -> bool:
        """Whether the number of kernels is known before the program runs."""
        return self.trips is not None and all(loop.bounded for loop in self.loops)


@dataclass(frozen=True)
class Instruction:
    """One instruction of HLO: its result, its operation, and the computations and the target that it calls."""

    shape: str
    op: str
    called: tuple[tuple[str, str], ...]
    target: str | None
    trips: int | None

    @property
    def entries(self) -> int:
        """Entries of the largest array of the result, without workspace."""
        return max((size for kind, size in self._arrays if kind != WORKSPACE), default=1)

    @property
    def workspace(self) -> int:
        """Bytes of workspace that a library uses."""
        return max((size for kind, size in self._arrays if kind == WORKSPACE), default=0) if self.target else 0

    @property
    def _arrays(self) -> list[tuple[str, int]]:
        """Type and number of entries of each array of the result."""
        found = _ARRAY.findall(self.shape)
        return [(kind, math.prod(int(n) for n in axes.split(",") if n)) for kind, axes in found]


@dataclass(frozen=True)
class Program:
    """A compiled program as computations, each a list of instructions."""

    computations: Mapping[str, tuple[Instruction, ...]]
    entry: str
    floats: tuple[str, ...]
    """Types of all floating-point and complex arrays."""

    @staticmethod
    def of(text: str) -> Program:
        """Read the text of an optimised HLO module."""
        computations: dict[str, list[Instruction]] = {}
        entry, name = "", ""
        for line in text.splitlines():
            if head := _HEAD.match(line):
                name = head["name"]
                computations[name] = []
                entry = name if head["entry"] else entry
            elif name and (found := _LINE.match(line)):
                rest = found["rest"]
                called = list(_CALLED.findall(rest))
                for branches in _BRANCHES.findall(rest):
                    called += [("branch", one.strip().lstrip("%")) for one in branches.split(",")]
                trips, target = _TRIPS.search(rest), _TARGET.search(rest)
                computations[name].append(
                    Instruction(
                        found["shape"],
                        found["op"],
                        tuple(called),
                        target[1] if target and found["op"] == "custom-call" else None,
                        int(trips[1]) if trips else None,
                    )
                )
        kinds = {kind for kind, _ in _ARRAY.findall(text) if kind[0] in "fbc"}
        return Program({name: tuple(lines) for name, lines in computations.items()}, entry, tuple(sorted(kinds)))

    @cached_property
    def whole(self) -> CompiledLoop:
        """The program as a loop with one iteration."""
        return self._run_of((self.entry,), 1)

    def _run_of(self, names: tuple[str, ...], trips: int | None) -> CompiledLoop:
        """Return computations that run one after another, as a loop with one iteration."""
        kernels = entries = 0
        loops: list[CompiledLoop] = []
        for one in (line for name in names for line in self.computations.get(name, ())):
            if one.op == "while":
                loops.append(self._run_of(tuple(name for _, name in one.called), one.trips))
            elif one.op in ("call", "async-start", "conditional"):
                # of a conditional every branch counts, since which one runs is not known
                inner = self._run_of(tuple(name for _, name in one.called), 1)
                kernels, entries = kernels + inner.kernels, entries + inner.entries
                loops += inner.loops
            elif one.op not in NO_KERNEL:
                kernels, entries = kernels + 1, entries + one.entries
        return CompiledLoop(trips, kernels, entries, tuple(loops))

    def _reached(self) -> Iterator[Instruction]:
        """Yield the instructions of all scheduled computations, each once, without those inside kernels."""
        waiting, seen = [self.entry], {self.entry}
        while waiting:
            for one in self.computations.get(waiting.pop(), ()):
                yield one
                if one.op in ("while", "call", "async-start", "conditional"):
                    new = [name for _, name in one.called if name not in seen]
                    seen.update(new)
                    waiting += new

    @cached_property
    def custom_calls(self) -> dict[str, int]:
        """The number of calls of each library function in the text of the program."""
        return dict(sorted(Counter(one.target for one in self._reached() if one.target).items()))

    @cached_property
    def workspace(self) -> int:
        """Maximum bytes of workspace that libraries use at a time."""
        return max((one.workspace for one in self._reached()), default=0)

    @property
    def host_calls(self) -> tuple[str, ...]:
        """Custom calls of functions that are not in the device's libraries, and transfers to the host."""
        transfers = {one.op for one in self._reached() if one.op in ("infeed", "outfeed", "send", "recv")}
        return (*(name for name in self.custom_calls if not name.startswith(ON_DEVICE)), *sorted(transfers))

    @cached_property
    def collectives(self) -> int:
        """Instructions in which devices wait for each other."""
        return sum(one.op.startswith(COLLECTIVES) and not one.op.endswith("-done") for one in self._reached())
