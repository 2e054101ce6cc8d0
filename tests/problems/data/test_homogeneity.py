"""The split of images with a homogeneity: parts, who has D_0, and how often."""

from itertools import pairwise

import numpy as np
import pytest

from mpisim.problems.data.arrange import split_images


def of_workers(parts):
    return [parts.images[a:b] for a, b in pairwise(parts.bounds)]


@pytest.mark.parametrize(("used", "n"), [(50, 4), (53, 6), (7, 6), (100, 1)])
@pytest.mark.parametrize("mix", ["workers", "samples"])
def test_all_different_or_all_alike(used, n, mix):
    different = of_workers(split_images(120, used, n, 0.0, mix, 5))
    together = np.concatenate(different)
    assert len(np.unique(together)) == len(together) < used  # D_0 stays with nobody
    sizes = {len(own) for own in different}
    assert max(sizes) - min(sizes) <= 1 and min(sizes) >= used // (n + 1)
    alike = split_images(120, used, n, 1.0, mix, 5)
    first = of_workers(alike)[0]
    assert not np.isin(first, together).any()
    for own, other in zip(of_workers(alike), different, strict=True):
        shorter = len(first) if mix == "workers" else len(other)
        assert np.array_equal(own, first[:shorter])
        if mix == "workers":
            assert len(first) + len(together) == used
    assert alike.common.all() or (mix == "samples" and used % (n + 1))


def test_how_many_workers_have_the_common_part():
    n, p = 4000, 0.75
    parts = split_images(3 * n + 3, 3 * n + 3, n, p, "workers", 1)
    assert abs(parts.common.mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)
    own = of_workers(parts)
    common = {tuple(own[i]) for i in np.flatnonzero(parts.common)}
    others = np.concatenate([own[i] for i in np.flatnonzero(~parts.common)])
    assert len(common) == 1 and len(np.unique(others)) == len(others)
    assert not np.isin(others, list(common.pop())).any()


def test_of_some_workers():
    parts = split_images(90, 90, 11, 0.5, "workers", 2)
    workers = np.array([2, 7, 8])
    images, bounds = parts.of(workers)
    own = of_workers(parts)
    assert np.array_equal(images, np.concatenate([own[i] for i in workers]))
    assert np.array_equal(np.diff(bounds), [len(own[i]) for i in workers])
    assert parts.of(workers[:0])[0].size == 0
