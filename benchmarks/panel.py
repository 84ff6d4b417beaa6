"""What does a live update cost the kernel, and what would a Matplotlib picture cost?

Four series of 600 points, in a real kernel that nobody watches. An update is all that
the panel does in a quarter of a second: it hears the run's events, keeps the points and
sends what is new. Everything that the kernel's threads do for it counts. The ways take
turns, because the machine's speed changes.

    .venv/bin/python benchmarks/panel.py
"""

from __future__ import annotations

import json
import statistics
import sys

from jupyter_client.manager import start_new_kernel

ROUNDS, UPDATES, PAUSE_S = 7, 20, 0.05

PREPARED = f"""
import io, itertools, json, time
import ipywidgets, numpy as np
from matplotlib.figure import Figure
from perfkit.measure.plan import Progress, Sampled, Ticked, TrialStarted
from perfkit.panel.live_chart import LiveChart
from perfkit.panel.live_chart import CAPACITY, Points
from perfkit.panel.view import doing
from perfkit.progress import Board

NAMES = ["one", "two", "three", "four"]
points, board = Points(NAMES, 60.0, 2.0), Board()
# On the run's clock, so that every twentieth update is a keyframe.
chart = LiveChart(clock=lambda: board.spent)
chart.begin(points, NAMES, 60.0)
moment = itertools.count(1)

def hear_a_quarter_second():
    number = next(moment)
    for tenth in range(10):
        at = (number + tenth / 10) / 4
        name = NAMES[tenth % 4]
        events = [Ticked(name, ((at, 0), (at + 0.01, 32), (at + 0.02, 32)))]
        if tenth % 5 == 0:
            load = dict(cpu_trial=1.5, cpu_other=0.2, cpu_perfkit=0.1, core_speed=1e9)
            events.append(Sampled(load | {"t": at}))
        for event in (*events, Progress(at, 60.0)):
            board.hear(event)
            points.hear(event)

def appended():
    hear_a_quarter_second()
    chart.update(points, doing(board), None)

for name in NAMES:
    for heard in (board, points):
        heard.hear(TrialStarted(name, 1, 0.0))
while points.total < CAPACITY:
    appended()

image = ipywidgets.Image()
lines = np.random.default_rng(0).normal(100, 5, (4, CAPACITY))

def picture():
    lines[:, :-1] = lines[:, 1:]
    figure = Figure(figsize=(7.6, 2.6))
    axes = figure.subplots()
    for series in lines:
        axes.plot(series)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    image.value = file.getvalue()

def nothing():
    pass

def cpu_ms(update):
    began = time.process_time()
    for _ in range({UPDATES}):
        update()
        time.sleep({PAUSE_S})
    return (time.process_time() - began) / {UPDATES} * 1e3
"""
MEASURED = f"""
ways = (nothing, appended, picture)
rounds = [[cpu_ms(way) for way in ways] for _ in range({ROUNDS})]
print(json.dumps(dict(zip([way.__name__ for way in ways], zip(*rounds)))))
"""


def main() -> None:
    """Start a kernel, measure in it, and print the median of each way."""
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        client.execute_interactive(PREPARED, output_hook=complain)
        texts: list[str] = []
        client.execute_interactive(
            MEASURED,
            output_hook=lambda message: texts.append(message["content"].get("text")),
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    found = json.loads(next(text for text in texts if text and text.startswith("{")))
    print("kernel CPU per update, 4 series of 600 points, median (least to most)")
    for way, milliseconds in found.items():
        middle = statistics.median(milliseconds)
        ends = f"{min(milliseconds):.2f} to {max(milliseconds):.2f}"
        print(f"  {way:10}{middle:8.2f} ms  ({ends})")


def complain(message: dict) -> None:
    """Show an error of the kernel, for there should be none."""
    if message["msg_type"] == "error":
        sys.exit("\n".join(message["content"]["traceback"]))


if __name__ == "__main__":
    main()
