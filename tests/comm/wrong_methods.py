"""python -m tests.comm.wrong_methods: each wrong method on the ranks of mpirun, with `run.debug`.

Prints {name: the line that ended it, on each rank} as JSON.
"""

import json
import sys

import numpy as np

import mpisim
from mpisim.core.errors import InconsistentRanks, MethodError
from mpisim.theory.setting import Step
from tests.helpers import run_tables, table


class Shifted(mpisim.Estimator):
    """EF21 with one line to be replaced."""

    h_i = mpisim.PerWorker()
    z_i = mpisim.PerWorker()
    h = mpisim.AtServer()
    y = mpisim.Shared()

    def start(self, x):
        self.h_i, self.h, self.y = 0 * self.oracle.gradients(x), 0 * x, x
        return self.estimate(x)

    def estimate(self, x):
        v_i = self.oracle.gradients(x) - self.h_i
        m_i = self.compress(v_i)
        self.h_i = self.h_i + m_i.decoded()
        m = self.star.mean(m_i)
        self.h = self.h + m
        g = self.star.broadcast(self.h)
        self.wrong(g, v_i, m)
        return g

    def wrong(self, g, v_i, m):
        self.y = g


def undecoded(self, g, v_i, m):
    self.h_i = v_i


def of_the_server(self, g, v_i, m):
    self.y = m + g


def state_of_the_server(self, g, v_i, m):
    self.y = self.h


def of_the_block(self, g, v_i, m):
    self.y = self.h_i.sum(axis=0)


def drawn_by_one_rank(self, g, v_i, m):
    if self.star.is_server:
        self.star.draw("extra")


def of_other_clients(self, g, v_i, m):
    self.y = self.star.broadcast(g, clients=np.array([0]))


def unsent_point(self, g, v_i, m):
    """x^k is the server's, and gradients are at a point that was not sent."""
    self.y = 0 * g


def summed_without_a_message(self, g, v_i, m):
    self.y = self.star.sum_over_workers(v_i) / self.star.n


def published(self, g, v_i, m):
    self.y = self.star.publish(self.h)


def kept_by_some_ranks(self, g, v_i, m):
    if not self.star.is_server:
        self.z_i = v_i


def steps_of_its_own(self, g, v_i, m):
    """The theory step, as `line` has it, is another one on each rank."""


def none_on_one_rank(self, g, v_i, m):
    self.z_i = None if self.star.is_server else v_i


def right(self, g, v_i, m):
    self.y = g


def keeps_momentum(self, g, v_i, m):
    momentum = 0.5 * self.h_i
    self.h_i = momentum
    self.star.mean(self.compress(momentum))


ALL = right, keeps_momentum, undecoded, of_the_server, state_of_the_server, of_the_block
ALL += drawn_by_one_rank, of_other_clients, unsent_point, summed_without_a_message, published
ALL += steps_of_its_own, none_on_one_rank, kept_by_some_ranks


def line(line_of_it, comm) -> str:
    """What ends a run of `Shifted` with this function; empty if nothing does."""
    name = f"shifted-{line_of_it.__name__}"
    members = {"wrong": line_of_it, "server_point": line_of_it is unsent_point}
    members["theory_step"] = lambda self, setting: Step(0.1 + self.star.rank, "its own")
    mpisim.method(name)(type("Shifted", (Shifted,), members))
    method, compressor = {"name": name, "stepsize": 0.1}, {"name": "randk", "k": 4}
    if line_of_it is steps_of_its_own:
        method["stepsize"] = "theory"
    try:
        run_tables(table(method, compressor, rounds=5, debug=True), comm=comm)
    except (MethodError, InconsistentRanks) as error:
        return str(error)
    return ""


def main() -> int:
    """Run them all."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    lines = {one.__name__: comm.gather(line(one, comm)) for one in ALL}
    if comm.rank == 0:
        print(json.dumps(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
