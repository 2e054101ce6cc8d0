"""MARINA + RandK as a JAX scan, in an environment with JAX and NumPy alone.

python scan.py DATA.npz CORES BLOCK BLOCKS: reads rows (n, m, d), labels (n, m), gamma, p, and the
draws (coins, subsets) of some rounds. Prints as JSON the iterate after these draws, and the seconds
of a round in each of BLOCKS scans of BLOCK rounds with draws of its own, on CORES cores.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter


def main(path: str, cores: int, block: int, blocks: int) -> None:
    """Compile, check and time."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    data = np.load(path)
    a, y = jnp.asarray(data["rows"]), jnp.asarray(data["labels"])
    gamma, p, size = float(data["gamma"]), float(data["p"]), data["subsets"].shape[2]
    n, m, d = a.shape

    def gradients(x):
        s = 1 / (1 + jnp.exp(-y * (a @ x)))
        return jnp.einsum("im,imd->id", -2 / m * s * (1 - s) ** 2 * y, a)

    def round(state, draw):
        (x, grad, g), (coin, chosen) = state, draw
        x = x - gamma * g
        old, grad = grad, gradients(x)
        values = d / size * jnp.take_along_axis(grad - old, chosen, axis=1)
        difference = jnp.zeros(d).at[chosen.ravel()].add(values.ravel()) / n
        g = jnp.where(coin < p, grad.mean(axis=0), g + difference)
        return (x, grad, g), None

    @jax.jit
    def given(state, coins, subsets):
        return jax.lax.scan(round, state, (coins, subsets))[0]

    @jax.jit
    def drawn(state, key):
        first, second = jax.random.split(key)
        coins = jax.random.uniform(first, (block,))
        subsets = jax.lax.top_k(jax.random.uniform(second, (block, n, d)), size)[1]
        return jax.lax.scan(round, state, (coins, subsets))[0]

    x = jnp.zeros(d)
    grad = gradients(x)
    start = x, grad, grad.mean(axis=0)
    checked = given(start, jnp.asarray(data["coins"]), jnp.asarray(data["subsets"]))[0]
    state = jax.block_until_ready(drawn(start, jax.random.key(0)))
    seconds = []
    for t in range(blocks):
        before = perf_counter()
        state = jax.block_until_ready(drawn(state, jax.random.key(t)))
        seconds.append((perf_counter() - before) / block)
    print(json.dumps({"x": np.asarray(checked).tolist(), "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
