"""NAME: one line on the method, and its paper."""

from __future__ import annotations

import mpisim


@mpisim.method("NAME", label="LABEL", letters={"alpha": "α"})
class CLASS(mpisim.Estimator):
    """g^k = (1/n) sum_i (h_i^k + m_i^k) with m_i^k = C_i(grad f_i(x^k) - h_i^k), which h_i follows.

    alpha : h_i^{k+1} = h_i^k + alpha m_i^k; "theory": 1 / (1 + omega)
    """

    alpha: float | str = "theory"

    h_i = mpisim.PerWorker("shifts")  # (m, d): a row for each worker of this rank
    h = mpisim.Shared("their mean")  # (d,): the same on all ranks

    def check(self):  # self.star, self.oracle and self.compressor are known here
        if self.alpha == "theory":
            if self.compressor.omega is None:
                raise mpisim.InputError('method.alpha = "theory" needs an unbiased compressor')
            self.alpha = 1 / (1 + self.compressor.omega)
        good = not isinstance(self.alpha, str) and 0 < self.alpha <= 1
        mpisim.require(good, "method.alpha", self.alpha, 'a number in (0, 1] or "theory"')

    def start(self, x):  # start and estimate set what is declared above, and nothing else
        self.h_i, self.h = 0 * self.oracle.gradients(x), 0 * x
        return self.estimate(x)

    def estimate(self, x):
        m_i = self.compress(self.oracle.gradients(x) - self.h_i)
        m = self.star.average(m_i)
        g = self.h + m
        self.h_i = self.h_i + self.alpha * m_i.decoded()  # as the server sees it
        self.h = self.h + self.alpha * m
        return g

    def theory_step(self, setting):  # for stepsize = "theory"
        if setting.omega is None or not setting.convex:
            raise mpisim.InputError("method.stepsize: the theorem needs convex f and unbiased C")
        step = 1 / (setting.c.L + 6 * setting.omega * setting.L_max / setting.n)
        return mpisim.Step(step, "what `mpisim theory` calls your theorem")
