# SPDX-License-Identifier: Apache-2.0
"""report.py - what bench/compare measured, as tables and as a plot."""
import math
import statistics

median = statistics.median

NAMES = {"hocket": "Hocket", "hocket-registered": "registered", "openmpi": "Open MPI",
         "mpich": "MPICH", "gloo": "Gloo"}
PEERS = ["openmpi", "mpich", "gloo"]
COLLS = ["allreduce", "allgather", "reducescatter", "alltoall", "broadcast"]


STREAMS_MIN = 256 << 10  # bytes of an operation: what is smaller waits, and streams nothing


def sent(coll, size, ranks):
    """Bytes that a rank sends, as nccl-tests count them for their bus bandwidth."""
    return int(size * (2 if coll == "allreduce" else 1) * (ranks - 1) / ranks)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


class Times:
    """The cells of a scenario, and the limits beside them."""

    def __init__(self, scenario, cores, stat):
        self.scenario = scenario
        self.cores = cores
        self.us = {(c["coll"], c["size"], c["who"]): stat(c["us"]) for c in scenario["cells"]}

    def get(self, coll, size, who):
        return self.us.get((coll, size, who))

    def rows(self):
        keys = {(c, s) for c, s, who in self.us if who not in ("limits", "streams")}
        return sorted(keys, key=lambda key: (COLLS.index(key[0]), key[1]))

    def contestants(self):
        return [n for n in NAMES if any(who == n for _, _, who in self.us)]

    def best_peer(self, coll, size):
        times = [(self.get(coll, size, who), who) for who in PEERS if self.get(coll, size, who)]
        return min(times) if times else (None, None)

    def limit(self, coll, size):
        if self.scenario["net"] == "shm":
            return self.limit_shm(coll, size)
        return self.limit_tcp(coll, size)

    def limit_shm(self, coll, size):
        """
        Bytes read and written by all ranks together, at the speed at which all
        cores copy, and never less than two cores take to exchange lines.
        """
        n = self.scenario["ranks"]
        copy = self.get("memcpy2", size, "limits")
        lines = self.get("lines", 8, "limits")
        if copy is None or lines is None:
            return None
        touched = {"allreduce": 3 - 1 / n, "allgather": 2, "reducescatter": 1 + 1 / n,
                   "alltoall": 2, "broadcast": 2 * (n - 1) / n}[coll]
        return max(lines, n / 2 * touched / 2 * copy)

    def limit_tcp(self, coll, size):
        """
        What has to cross between the two hosts, through one plain socket; of an
        alltoall as much stays on each host, and has to be copied; vectors of the two
        ranks of a host have to be added, and the sum copied.
        """
        how = {"alltoall": "kept", "allreduce": "added"}.get(coll, "socket")
        if how == "added" and self.scenario["ranks"] != 2 * self.scenario["hosts"]:
            how = "socket"
        return self.crossing(coll, size, how)

    def streams(self, coll, size):
        return self.get("socket", sent(coll, size, self.scenario["ranks"]), "streams")

    def crossing(self, coll, size, how):
        """What has to cross between the two hosts takes so long, measured that way."""
        each = self.scenario["ranks"] // 2
        if coll == "broadcast":
            return self.get("stream", size, "limits")
        part = {"allreduce": 1, "alltoall": each / 2, "allgather": 0.5, "reducescatter": 0.5}[coll]
        return self.get(how, max(4, int(size * part)), "limits")


# ---- text ----

def number(value):
    """Three digits that mean something."""
    if value is None:
        return "-"
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return "%.*f" % (digits, value)


def ratio(over, under):
    return number(over / under) if over and under else "-"


def bytes_text(size):
    for shift, unit in (30, "GiB"), (20, "MiB"), (10, "KiB"):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return "%d %s" % (size >> shift, unit)
    return "%d B" % size


def table(head, rows, left=1):
    """Columns line up; the first `left` of them to the left."""
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]

    def line(row):
        cells = [cell.ljust(w) if i < left else cell.rjust(w)
                 for i, (cell, w) in enumerate(zip(row, widths))]
        return "| " + " | ".join(cells) + " |\n"

    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return line(head) + line(rule) + "".join(line(row) for row in rows)


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def before(result, end, stat):
    """Now / before of each cell, by scenario: geometric means, and cells far from them."""
    text = ""
    for scenario in result["scenarios"]:
        us = {(c["coll"], c["size"], c["who"]): [] for c in scenario["cells"]}
        for cell in scenario["cells"]:
            us[cell["coll"], cell["size"], cell["who"]] += cell["us"]
        ratios = {(coll, size, who): stat(times) / stat(us[coll, size, who + end])
                  for (coll, size, who), times in us.items() if (coll, size, who + end) in us}
        if not ratios:
            text += "%s: nothing was measured on both; see the lines above\n\n" % scenario["name"]
            continue
        who = list(dict.fromkeys(w for _, _, w in ratios))
        sizes = sorted({size for _, size, _ in ratios})
        rows = [[coll, name] + ["-" if (coll, size, name) not in ratios
                                else "%.2f" % ratios[coll, size, name] for size in sizes]
                + ["%.3f" % geomean([r for (c, _, w), r in ratios.items()
                                     if (c, w) == (coll, name)])]
                for coll in dict.fromkeys(c for c, _, _ in ratios) for name in who]
        text += "%s: %s\n\n" % (scenario["name"], scenario["text"])
        text += table(["now / before", ""] + list(map(bytes_text, sizes)) + ["mean"], rows, 2)
        text += "\ngeometric mean of %d cells: %.3f\n\n" % (len(ratios),
                                                           geomean(ratios.values()))
    return text


def times_table(times):
    who = times.contestants()
    ours = "hocket" in who
    head = ["collective", "bytes"] + [NAMES[w] for w in who] + ["best peer"]
    head += ["best peer / Hocket"] if ours else []
    limits = [] if times.scenario["net"] == "shm" else [
        ("socket", lambda coll, size: times.crossing(coll, size, "socket"))]
    limits.append(("limit", times.limit))
    if any(who == "streams" for _, _, who in times.us):
        limits.append(("streams", times.streams))
    for name, _ in limits:
        head += [name] + (["Hocket / " + name] if ours else [])
    if "hocket-registered" in who:
        head += ["registered / limit"]
    rows = []
    for coll, size in times.rows():
        best, name = times.best_peer(coll, size)
        mine = times.get(coll, size, "hocket")
        row = [coll, bytes_text(size)] + [number(times.get(coll, size, w)) for w in who]
        row += [NAMES.get(name, "-")] + ([ratio(best, mine)] if ours else [])
        for _, limit in limits:
            row += [number(limit(coll, size))] + ([ratio(mine, limit(coll, size))] if ours else [])
        if "hocket-registered" in who:
            row += [ratio(times.get(coll, size, "hocket-registered"), times.limit(coll, size))]
        rows.append(row)
    return table(head, rows)


def means_table(times):
    """Geometric means of peer / Hocket: by collective, and of all."""
    who = times.contestants()
    ours = [w for w in ("hocket", "hocket-registered") if w in who]
    peers = [w for w in PEERS if w in who]
    if not ours or not peers:
        return ""
    columns = [(p, o) for o in ours for p in peers + ["best peer"]]
    head = ["geometric mean"] + ["%s / %s" % (NAMES.get(p, p), NAMES[o]) for p, o in columns]

    def mean(keys, peer, mine):
        values = []
        for coll, size in keys:
            theirs = times.best_peer(coll, size)[0] if peer == "best peer" else \
                times.get(coll, size, peer)
            under = times.get(coll, size, mine)
            if theirs and under:
                values.append(theirs / under)
        return number(geomean(values))

    rows = []
    for coll in [c for c in COLLS if any(c == key[0] for key in times.rows())] + ["all"]:
        keys = [key for key in times.rows() if coll in (key[0], "all")]
        rows.append([coll] + [mean(keys, p, o) for p, o in columns])
    return "\n" + table(head, rows)


INTRO = """\
<!-- Written by bench/compare; do not edit. -->
# Hocket compared with its peers

    %s

measured all of this, each scenario in one run, on %s. Times
are microseconds per operation: the %s of %d batches in each round. In each round every
library has a turn, in a different order each time. In the columns "... / Hocket" a ratio above 1
means that Hocket is faster. A limit is what the machine allows.

%s
* Elements are fp32, reductions are sums, operations are out of place (a broadcast has one buffer),
  and every result was checked.
* Bytes are counted as in nccl-tests: those of the vector for allreduce and broadcast, those of all
  blocks for the others. A block has at least one element.
* The time of an operation is that of the slowest rank. The root of a broadcast changes from call to
  call; a fixed root would run ahead, and the time would depend on how many messages can be queued.
* If there are as many cores as ranks, every rank is bound to a core. Otherwise no rank is bound, and
  Open MPI is told that it is oversubscribed, so that it yields.
* In shared memory, Open MPI and MPICH use their default transports. For TCP over loopback, Open MPI
  uses `btl tcp,self` and MPICH `UCX_TLS=tcp,self` between all ranks. Between namespaces, Open MPI
  uses its defaults, and MPICH is not measured. With more ranks than cores MPICH, which spins, takes
  tens of milliseconds for 8 bytes, and is left out. Gloo has only TCP. Its reduce-scatter is left
  out: it overwrites data that it has yet to send, and its sums are wrong.
* *registered* is Hocket with buffers from hk_mem_alloc(3).
* The limit in shared memory is the time in which two processes exchange two cache lines or, if
  longer, the time in which two cores copy (memcpy) as many bytes as all ranks must read and write:
  for n ranks and N bytes, (3n - 1) N for allreduce, 2n N for allgather and alltoall, (n + 1) N for
  reduce-scatter, and 2 (n - 1) N for broadcast.
* *socket* is the time in which the bytes that must cross between two hosts pass through one plain
  socket: in both directions at once, or in one direction for broadcast. It is also the limit of TCP,
  with two exceptions. In an alltoall as many bytes stay on each host as leave it. In an allreduce of
  hosts with two ranks, vectors must be added and the sum copied. The cores that move the bytes must do
  this too, so the limit is the time in which two processes, one per host, do both, block by block.
* *streams* is measured where hosts have several ranks. As many processes as ranks, in pairs across
  the hosts and on the same cores, send and receive through plain sockets what a rank sends by the
  count of nccl-tests, on which bus bandwidth is based: 2 (n - 1) N / n bytes for allreduce, and
  (n - 1) N / n for alltoall. On two hosts of two ranks Hocket sends two thirds of the former and one
  third of the latter through shared memory.
"""


def markdown(result, command, stat):
    versions = "".join("* %s\n" % text for who, text in sorted(result["versions"].items())
                       if who != "hocket-registered")
    text = INTRO % (command, result["machine"], "least" if stat is min else "median",
                    result["batches"], versions)
    if result["foreign"]:
        text += "* Other programs used %.1f%% of the cores (median of runs; at most %.1f%%).\n" % (
            100 * median(result["foreign"]), 100 * max(result["foreign"]))
    if result.get("distance", "any") != "any":
        text += ("* A hypervisor moves virtual cores. Runs with a rank on each core were repeated until, "
                 "before and after\n  them, two cache lines were exchanged in %s than twice the minimum "
                 "time.\n"
                 % ("less" if result["distance"] == "near" else "more"))
    for name, who, what in result["failures"]:
        text += "* %s failed at %s in %s.\n" % (NAMES.get(who, who), what or "its run", name)
    for scenario in result["scenarios"]:
        times = Times(scenario, result["cores"], stat)
        text += "\n## %s: %s\n\n" % (scenario["name"], scenario["text"])
        text += "%d rounds.\n\n" % scenario["rounds"]
        text += times_table(times) + means_table(times)
    return text


# ---- the plot ----

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 15px; }
.small { font-size: 11px; fill: #57606a; }
.ground { fill: #ffffff; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
.hocket { stroke: #cf222e; } .hocket-registered { stroke: #cf222e; stroke-dasharray: 7 4; }
.openmpi { stroke: #0969da; } .mpich { stroke: #8250df; } .gloo { stroke: #1a7f37; }
.limit { stroke: #6e7781; stroke-dasharray: 2 4; }
.dot { stroke: none; } .dot.hocket, .dot.hocket-registered { fill: #cf222e; }
.dot.openmpi { fill: #0969da; } .dot.mpich { fill: #8250df; } .dot.gloo { fill: #1a7f37; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .small { fill: #9198a1; }
.ground { fill: #0d1117; } .grid { stroke: #30363d; }
.hocket, .hocket-registered { stroke: #ff7b72; }
.openmpi { stroke: #58a6ff; } .mpich { stroke: #bc8cff; }
.gloo { stroke: #3fb950; } .limit { stroke: #9198a1; }
.dot.hocket, .dot.hocket-registered { fill: #ff7b72; } .dot.openmpi { fill: #58a6ff; }
.dot.mpich { fill: #bc8cff; } .dot.gloo { fill: #3fb950; }
}
"""
PLOTTED = {"shm2": "2 ranks, shared memory", "tcp2": "2 ranks, TCP over loopback"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 480, 400, 66, 44, 28, 46


class Panel:
    """Time against size for one scenario, both axes logarithmic."""

    def __init__(self, times, x):
        self.x = x
        self.title = PLOTTED[times.scenario["name"]]
        sizes = [size for coll, size in times.rows() if coll == "allreduce"]
        self.curves = []
        for who in times.contestants() + ["limit"]:
            points = [(s, times.limit("allreduce", s) if who == "limit" else
                       times.get("allreduce", s, who)) for s in sizes]
            points = [(s, us) for s, us in points if us]
            if points:
                self.curves.append((who, points))
        every = [us for _, points in self.curves for _, us in points]
        self.low, self.high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
        self.first, self.last = math.log2(sizes[0]), math.log2(max(sizes[-1], 2 * sizes[0]))

    def at(self, size, us):
        across = (math.log2(size) - self.first) / (self.last - self.first)
        up = (math.log10(us) - self.low) / max(1, self.high - self.low)
        return (self.x + LEFT + across * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM))

    def axes(self):
        out = ['<text class="title" x="%d" y="24">allreduce, %s</text>'
               % (self.x + LEFT, self.title)]
        right = self.x + WIDTH - RIGHT
        for power in range(self.low, self.high + 1):
            y = self.at(2 ** self.first, 10.0 ** power)[1]
            text = "%g us" % 10 ** power if power < 3 else "%g ms" % 10 ** (power - 3)
            out.append('<path class="grid" d="M%d %.1fH%d"/>' % (self.x + LEFT, y, right))
            out.append('<text class="small" x="%d" y="%.1f" text-anchor="end">%s</text>'
                       % (self.x + LEFT - 6, y + 4, text.replace("us", "\u00b5s")))
        for power in range(int(self.first), int(self.last) + 1, 3):
            x = self.at(2 ** power, 10.0 ** self.low)[0]
            out.append('<path class="grid" d="M%.1f %dV%d"/>' % (x, TOP, HEIGHT - BOTTOM))
            out.append('<text class="small" x="%.1f" y="%d" text-anchor="middle">%s</text>'
                       % (x, HEIGHT - BOTTOM + 18, bytes_text(2 ** power)))
        return out

    def lines(self):
        out = []
        for who, points in self.curves:
            places = [self.at(size, us) for size, us in points]
            path = "L".join("%.1f %.1f" % place for place in places)
            out.append('<path class="line %s" d="M%s"/>' % (who, path))
            if who != "limit":
                out += ['<circle class="dot %s" cx="%.1f" cy="%.1f" r="3"/>' % (who, x, y)
                        for x, y in places]
        return out


def legend(names):
    out = []
    x = LEFT
    for who in names:
        text = {"limit": "limit of the machine", "hocket-registered": "Hocket, registered"}.get(
            who, NAMES.get(who))
        out.append('<path class="line %s" d="M%d %dh26"/>' % (who, x, HEIGHT + 8))
        out.append('<text x="%d" y="%d">%s</text>' % (x + 32, HEIGHT + 12, text))
        x += 32 + 7 * len(text) + 26
    return out


def plot(result):
    """allreduce on 2 ranks, by shared memory and by TCP, as far as measured."""
    panels = []
    for scenario in result["scenarios"]:
        times = Times(scenario, result["cores"], median)
        if scenario["name"] in PLOTTED and any(c == "allreduce" for c, _ in times.rows()):
            panels.append(Panel(times, WIDTH * len(panels)))
    width, height = WIDTH * max(1, len(panels)), HEIGHT + 30
    names = [who for panel in panels for who, _ in panel.curves]
    names = [n for n in list(NAMES) + ["limit"] if n in names]
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
           'role="img" aria-label="time of an allreduce against its size">'
           % (width, height, width, height), "<style>%s</style>" % STYLE,
           '<rect class="ground" width="%d" height="%d" rx="6"/>' % (width, height)]
    for panel in panels:
        out += panel.axes() + panel.lines()
    return "\n".join(out + legend(names) + ["</svg>"]) + "\n"
