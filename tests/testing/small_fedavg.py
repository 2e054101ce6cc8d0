"""FedAvg as a user writes it: local steps of some clients, in 25 lines."""

import mpisim


@mpisim.method("small-fedavg", "FedAvg", dense=True)
class SmallFedAvg(mpisim.Estimator):
    local_steps: int = 3
    participants: int = 2

    server_point = True
    server_stepsize = 1.0
    estimates_gradient = False

    def start(self, x):
        return self.estimate(x)

    def estimate(self, x):
        star, S = self.star, self.star.sample(self.participants, replace=False)
        local = S[(star.first <= S) & (star.first + star.m > S)] - star.first
        x = star.broadcast(x, clients=S)
        y_i = star.zeros(len(local), len(x)) + x
        for _ in range(self.local_steps):
            y_i = y_i - star.stepsize * self.oracle.gradients(y_i, local)
        return -star.mean(star.compress(self.compressor, y_i - x, clients=S))
