# SPDX-License-Identifier: Apache-2.0
"""A predictor of KServe with a rank for each shard of its model.

Rank 0 is the server: for every request it broadcasts the number of rows, then the rows; all
ranks multiply them with their columns of a matrix, and rank 0 gathers. A count of 0 ends the
others. A thread of rank 0 is the client here, and ends the server when its answers were right.
"""

import json
import os
import signal
import threading
import time
import urllib.request

import numpy as np

import hocket

PORT = int(os.environ["PORT"])
WIDTH = 12


def matrix():
    return np.random.default_rng(11).standard_normal((WIDTH, WIDTH)).astype(np.float32)


class Shards:
    """One rank's columns, and what all ranks do for a request."""

    def __init__(self, group):
        self.group = group
        self.mine = np.ascontiguousarray(np.split(matrix(), group.size, axis=1)[group.rank])

    def product(self, rows):
        """Collective; `rows` of rank 0 count. Returns the product at rank 0."""
        self.group.broadcast(rows)
        parts = self.group.gather(np.ascontiguousarray(rows @ self.mine))
        return None if parts is None else np.concatenate(list(parts), axis=1)

    def announce(self, count=0):
        """Collective: how many rows come, by rank 0; 0 is the end."""
        return int(self.group.broadcast(np.array([count], np.int64))[0])

    def follow(self):
        """What the ranks behind the server do, until the end."""
        self.group.barrier()
        requests = 0
        while count := self.announce():
            self.product(np.empty((count, WIDTH), np.float32))
            requests += 1
        return requests


def ask(rows):
    body = json.dumps({"instances": rows.tolist()}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/models/shards:predict", body,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return np.array(json.load(answer)["predictions"], np.float32)


def client(size, verdict):
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v2/health/ready", timeout=5):
                    break
            except OSError:
                time.sleep(0.1)
        for count in (1, 3, 64, 2):
            rows = np.random.default_rng(count).standard_normal((count, WIDTH)).astype(np.float32)
            np.testing.assert_allclose(ask(rows), rows @ matrix(), rtol=1e-4, atol=1e-5)
            print(f"{count} rows through HTTP and {size} ranks: right", flush=True)
        verdict.append("right")
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def serve(shards):
    import kserve

    class Predictor(kserve.Model):
        """The model that KServe sees."""

        def __init__(self):
            super().__init__("shards")
            self.ready = True

        async def predict(self, payload, headers=None, response_headers=None):
            rows = np.array(payload["instances"], np.float32)
            shards.announce(len(rows))
            return {"predictions": shards.product(rows).tolist()}

    verdict = []
    threading.Thread(target=client, args=(shards.group.size, verdict), daemon=True).start()
    kserve.ModelServer(http_port=PORT, enable_grpc=False, workers=1).start([Predictor()])
    return verdict == ["right"]


def main():
    with hocket.group() as group:
        shards = Shards(group)
        if group.rank > 0:
            shards.follow()
            return
        group.barrier()
        good = serve(shards)
        shards.announce(0)
    if not good:
        raise SystemExit("an answer was wrong, or none came")


if __name__ == "__main__":
    main()
