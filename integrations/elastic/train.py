# SPDX-License-Identifier: Apache-2.0
"""A model trained data-parallel while a rank dies and another joins, as torchft does it.

Every rank holds the whole model and a share of the samples. When a call fails because a rank
is gone, the survivors shrink the group, agree on the last step that all of them have done and
go on from there. Later rank 0 grows the group by a newcomer, who gets the model by a broadcast.
As gradients are summed over all samples, the result is that of one process alone.

    hocket run -n 4 --keep-going --addr 127.0.0.1:PORT python train.py
    HOCKET_RANK=new HOCKET_ADDR=127.0.0.1:PORT HOCKET_KEY=... python train.py

Only hocket and the standard library are needed; integrations/elastic/run starts it.
"""

import array
import math
import os
import random
import signal

import hocket

FEATURES = 8
SAMPLES = 960
STEPS = 40
DIES = {"rank": 2, "step": 12}      # a rank kills itself
GROWS = 24                          # the group takes a newcomer in
RATE = 2.0
NEAR = 1e-9                         # sums in another order differ by less


def sample(i):
    rng = random.Random(i)
    x = [rng.uniform(-1, 1) for _ in range(FEATURES)]
    return x, 1.0 if sum(v / (f + 1) for f, v in enumerate(x)) > 0 else 0.0


DATA = [sample(i) for i in range(SAMPLES)]


def gradient(weights, first, end):
    """The sums over samples first ... end - 1, and their loss behind them."""
    sums = array.array("d", [0.0] * (FEATURES + 1))
    for x, truth in DATA[first:end]:
        guess = 1 / (1 + math.exp(-sum(w * v for w, v in zip(weights, x))))
        for f, v in enumerate(x):
            sums[f] += (guess - truth) * v
        sums[FEATURES] -= math.log(guess if truth else 1 - guess)
    return sums


def descend(weights, sums):
    return array.array("d", [w - RATE * s / SAMPLES for w, s in zip(weights, sums)])


def alone():
    """The weights that one process gets."""
    weights = array.array("d", [0.0] * FEATURES)
    for _ in range(STEPS):
        weights = descend(weights, gradient(weights, 0, SAMPLES))
    return weights


class Training:
    """One rank: its group, its model, and the model of one step ago."""

    def __init__(self):
        self.newcomer = os.environ.get("HOCKET_RANK") == "new"
        self.group = hocket.group()
        self.name = "newcomer" if self.newcomer else self.group.rank
        self.weights = self.before = array.array("d", [0.0] * FEATURES)
        self.step = 0
        self.grown = self.newcomer

    def say(self, text):
        if self.group.rank == 0:
            print(f"step {self.step}: {text}", flush=True)

    def share_model(self):
        """From rank 0 to all: the step, and the weights."""
        model = array.array("d", [self.step, *self.weights])
        self.group.broadcast(model, root=0)
        self.step, self.weights = int(model[0]), model[1:]

    def advance(self):
        """A step; raises where a rank is gone, and then has changed nothing."""
        if self.step == DIES["step"] and not self.newcomer:
            self.group.barrier()
            if self.name == DIES["rank"]:
                os.kill(os.getpid(), signal.SIGKILL)
        rank, size = self.group.rank, self.group.size
        sums = gradient(self.weights, SAMPLES * rank // size, SAMPLES * (rank + 1) // size)
        self.group.allreduce(sums)
        self.before, self.weights = self.weights, descend(self.weights, sums)
        self.step += 1

    def recover(self, error):
        """A group of the survivors, at the last step that all of them have done."""
        old = self.group
        self.group = old.shrink()
        old.close()
        least = array.array("d", [self.step])
        self.group.allreduce(least, op="min")
        if self.step > least[0]:        # at most one: nobody ends a step that others have not begun
            self.weights, self.step = self.before, self.step - 1
        self.say(f"{error.why}; {self.group.size} ranks go on")

    def grow(self):
        old = self.group
        self.group = old.grow(old.size + 1, timeout=200)
        old.close()
        self.grown = True
        self.say(f"a newcomer: {self.group.size} ranks go on")

    def run(self):
        if self.newcomer:
            self.share_model()
        while self.step < STEPS:
            try:
                if self.step == GROWS and not self.grown:
                    self.grow()
                    self.share_model()
                self.advance()
            except (hocket.PeerError, hocket.RevokedError) as error:
                self.recover(error)
        distance = max(abs(a - b) for a, b in zip(self.weights, alone()))
        assert distance < NEAR, f"{distance} from what one process gets"
        self.say(f"done; {self.group.size} ranks have the weights of one process alone, "
                 f"within {distance:.1e}")
        self.group.close()


Training().run()
