"""Photographed codes on the side of goods wagons, one strip each."""

import csv

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIGNS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WIDTH, HEIGHT = 160, 32
LONGEST = 9


def paint(code, font, rng):
    strip = Image.new("L", (WIDTH, HEIGHT), int(rng.integers(60, 130)))
    pen = ImageDraw.Draw(strip)
    place = int(rng.integers(3, 12))
    for sign in code:
        pen.text((place, int(rng.integers(3, 8))), sign, fill=int(rng.integers(190, 256)), font=font)
        place += int(rng.integers(14, 17))
    grime = rng.normal(0, 14, (HEIGHT, WIDTH))
    return Image.fromarray(np.clip(np.asarray(strip) + grime, 0, 255).astype("uint8"))


def photograph(folder, count, seed=40):
    """Write NUMBER.png for each wagon and codes.csv with what is to be read."""
    rng = np.random.default_rng(seed)
    font = ImageFont.load_default(size=17)
    with open(folder / "codes.csv", "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["strip", "code"])
        for number in range(count):
            length = int(rng.integers(5, LONGEST + 1))
            code = "".join(SIGNS[n] for n in rng.integers(len(SIGNS), size=length))
            paint(code, font, rng).save(folder / f"{number:05d}.png")
            table.writerow([f"{number:05d}.png", code])


def read(folder):
    """Strips as (count, width, height, 1), codes as numbers, filled up with -1."""
    with open(folder / "codes.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    strips = np.empty((len(rows), WIDTH, HEIGHT, 1), "float32")
    codes = np.full((len(rows), LONGEST), -1, "int32")
    for number, row in enumerate(rows):
        with Image.open(folder / row["strip"]) as strip:
            strips[number, :, :, 0] = np.asarray(strip).T / 127.5 - 1
        codes[number, : len(row["code"])] = [SIGNS.index(sign) for sign in row["code"]]
    return strips, codes
