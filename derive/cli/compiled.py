"""The output of `derive build --target`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from derive.cli.output import part_of, plain, print_json, print_table, progress_bar, settings_line
from derive.cli.problem import loaded, named_with_choices

if TYPE_CHECKING:
    from numerics.devices.records import Compilation, CompiledFunction


def print_compiled(words: tuple[str, ...], options: Mapping[str, Any], as_json: bool) -> None:
    """Compile models for a GPU and print the result."""
    from derive.inputs.loading import setting_names

    named = named_with_choices(words) or [(name, {}) for name in setting_names()]
    _compile_on_the_host()
    found = []
    with progress_bar("compiling", as_json) as progress:
        for k, (target, chosen) in enumerate(named):
            theory, values, several = loaded(target, [f"{name}={value}" for name, value in chosen.items()])
            if several:
                raise click.UsageError(f"{target}: give each parameter one value; --batch compiles for several points")
            share = part_of(progress, k / len(named), (k + 1) / len(named))
            found.append((theory.compile(values, progress=share, **options), values))
    if as_json:
        print_json({"compiled": [plain(one.as_dict()) for one, _ in found]})
        return
    for one, values in found:
        print_compilation(one, values)


def _compile_on_the_host() -> None:
    """Keep JAX from searching for a GPU in this process unless the user chose a platform."""
    import jax

    config: Any = jax.config  # JAX gives it no types
    if not config.jax_platforms:
        config.update("jax_platforms", "cpu")


def print_compilation(one: Compilation, values: Mapping[str, Any]) -> None:
    """Print the compilation of one model."""
    device, shared = one.device, f", sharded over {one.devices}" if one.devices > 1 else ""
    together = f", {one.batch} points together{shared}" if one.batch > 1 else ""
    point = settings_line(one.setting, values)
    click.echo(f"{point}, compiled for {device.name}{together}; nothing was executed on it")
    heads = ("function", "kernels", "per step", "loops", "bytes per point", "busy from", "fits", "seconds")
    print_table("", heads, [_row(part, one) for part in one.functions])
    for part in one.functions:
        if part.custom_calls:
            click.echo(f"{part.name} calls {', '.join(f'{name} ({n})' for name, n in part.custom_calls.items())}")
    waiting = sum(part.collectives for part in one.functions)
    doubles = all(part.double for part in one.functions)
    click.echo(f"floating point: {'double precision throughout' if doubles else 'NOT everywhere in double precision'}")
    if one.devices > 1:
        click.echo(f"instructions in which devices wait for each other: {waiting}")
    for part in one.functions:
        if part.host_calls:
            click.echo(f"calls the host: {part.name} ({', '.join(part.host_calls)})")
    click.echo("on the host:")
    for why in dict.fromkeys(rest.why for rest in one.host):
        click.echo(f"  {', '.join(rest.name for rest in one.host if rest.why == why)}: {why}")
    threads = f"{device.multiprocessors} x {device.threads} = {device.resident_threads}"
    click.echo(
        "busy from: number of points at which the mean kernel has as many entries as the device holds threads "
        f"({threads})\n"
    )


def _row(part: CompiledFunction, one: Compilation) -> tuple[str, ...]:
    steps = sorted(part.steps)
    per_step = "-" if not steps else str(steps[0]) if steps[0] == steps[-1] else f"{steps[0]} to {steps[-1]}"
    return (
        part.name,
        str(part.program.kernels),
        per_step,
        str(len(steps)),
        str(part.memory),
        str(part.busy(one.device)),
        str(part.most(one.device)),
        f"{part.seconds:.1f}",
    )
