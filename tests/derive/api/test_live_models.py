"""Models in memory have the spectra of their checkpoints."""

from __future__ import annotations

import re
from collections import namedtuple
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import derive
from derive.results.spectra import verdict_of

RNG = np.random.default_rng(0)
FIRST, SECOND, BIAS = RNG.standard_normal((60, 40)), RNG.standard_normal((30, 60)), np.zeros(60)


class Tensor:
    """A tensor of torch, as far as it is used."""

    def __init__(self, array, kind="float32"):
        self.array, self.shape, self.dtype = array, array.shape, f"torch.{kind}"

    def is_floating_point(self):
        return "float" in self.dtype

    def detach(self):
        return self

    cpu = float = double = detach

    def numpy(self):
        return self.array


class Module:
    def state_dict(self):
        return {"fc1.weight": Tensor(FIRST), "fc1.bias": Tensor(BIAS), "fc2.weight": Tensor(SECOND, "bfloat16")}


class Bare:
    """A tensor without a `dtype`."""

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    def numpy(self):
        return self.array


class BareModule:
    def state_dict(self):
        return {"fc1.weight": Bare(FIRST), "fc2.weight": Bare(SECOND)}


class Parameters:
    def named_parameters(self):
        return iter(Module().state_dict().items())


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    weight: object
    bias: object


Tree = namedtuple("Tree", "layers activation")


def models():
    flat = {"fc1.weight": FIRST, "fc1.bias": BIAS, "fc2.weight": SECOND}
    layers = [Layer(jnp.asarray(FIRST), jnp.asarray(BIAS)), Layer(jnp.asarray(SECOND), None)]
    return {
        "dict": (flat, ("fc1.weight", "fc2.weight")),
        "nested": ({"fc1": {"weight": FIRST, "bias": BIAS}, "fc2": {"weight": SECOND}}, ("fc1.weight", "fc2.weight")),
        "state_dict": (Module(), ("fc1.weight", "fc2.weight")),
        "bare tensors": (BareModule(), ("fc1.weight", "fc2.weight")),
        "named_parameters": (Parameters(), ("fc1.weight", "fc2.weight")),
        "pytree": (Tree(layers, jnp.tanh), ("layers.0.weight", "layers.1.weight")),
        "pytree in a dict": ({"params": layers}, ("params.0.weight", "params.1.weight")),
        "list": ([FIRST, SECOND], ("0", "1")),
        "array": (FIRST, ("tensor",)),
    }


@pytest.mark.parametrize("kind", list(models()))
def test_every_kind_of_model_has_the_spectra_of_its_file(kind, tmp_path):
    model, names = models()[kind]
    np.savez(tmp_path / "w.npz", first=FIRST, second=SECOND)
    found, stored = derive.spectra(model), derive.spectra(tmp_path / "w.npz")
    assert tuple(one.name for one in found) == names and found.file == type(model).__name__
    frame, expected = found.to_frame(), stored.to_frame()[: len(names)]
    for column in ("scale", "top", "participation_rows", "participation_columns_error", "tail_exponent", "tail_error"):
        assert frame[column].to_numpy() == pytest.approx(expected[column].to_numpy(), rel=1e-4)
    assert list(frame["verdict"]) == list(expected["verdict"])


def test_two_models_show_what_changed_and_small_types_are_read():
    later = {"W": jnp.asarray(FIRST, jnp.bfloat16) + 1, "key": jax.random.key(0), "n": jnp.arange(3)}
    found = derive.spectra({"W": FIRST.astype(np.float16)}, later)
    assert found.before == found.file == "dict" and found.changes[0].moved == pytest.approx(1.0, abs=0.1)
    assert {one.name for one in found.skipped} == {"key", "n"}
    assert found.to_frame().loc["W", "verdict"] == "noise, and 1 outlier above the bulk"


def test_a_verdict_counts_the_rows_of_a_localised_vector():
    spiked = np.random.default_rng(0).standard_normal((200, 100))
    spiked[3] += 8.0
    assert re.search(r"; .* [0-9.()]+ of 200 rows$", verdict_of(derive.spectra({"W": spiked})["W"]))


@pytest.mark.parametrize("model", [3, None, {}, Module, {"a": "text"}, jnp.tanh])
def test_what_holds_no_arrays_is_refused(model):
    with pytest.raises(derive.errors.DeriveError, match="contains no arrays"):
        derive.spectra(model)


def test_arrays_without_numbers_are_refused_with_a_reason():
    with pytest.raises(derive.errors.DeriveError, match="cannot be read"):
        derive.spectra({"W": jax.ShapeDtypeStruct((60, 40), jnp.float32)})
    with pytest.raises(derive.errors.DeriveError, match="twice"):
        derive.spectra({"a": {"b": FIRST}, "a.b": SECOND})
    with pytest.raises(derive.errors.DeriveError, match="no such array"):
        derive.spectra({"W": FIRST}, include="V")
