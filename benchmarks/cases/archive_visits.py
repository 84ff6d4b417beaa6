# cause: every visit is padded to the longest one, that of a robot: the median visit has 18
#        pages, but the GRU walks some 900 steps for each batch, nearly all of them zeros
# fix: batches of visits of like length, each padded to its own longest
#      (bucket_by_sequence_length)
# expect: 5 to 12 times faster an epoch
# form: argparse, functions and main, JSON lines on disk, fit on padded arrays with a mask
# report: https://github.com/udacity/aind2-nlp-capstone/blob/master/machine_translation.ipynb
#         https://github.com/Omolinari10/Capstone-Project-2-NLP/blob/master/my_pad.py
# lines: 52-53
"""Will this visitor of the picture archive order a print? Learnt from the pages he saw."""

import argparse
import json
import pathlib
import tempfile

import keras
import numpy as np

PAGES = 2500


def write_log(path, count, seed):
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(2.9, 0.65, count), 3, 140).astype(int)
    robots = rng.choice(count, 5, replace=False)
    lengths[robots] = rng.integers(600, 900, 5)
    popularity = 1 / np.arange(1, PAGES + 1) ** 0.9
    seen = rng.choice(PAGES, lengths.sum(), p=popularity / popularity.sum()) + 1
    with open(path, "w") as out:
        for number, pages in enumerate(np.split(seen, np.cumsum(lengths)[:-1])):
            pull = np.mean(pages % 7 == 0) * 6 + 0.03 * min(len(pages), 40) - 1.6
            ordered = bool(rng.random() < 1 / (1 + np.exp(-3 * pull)))
            visit = {"visit": number, "pages": pages.tolist(), "ordered": ordered}
            out.write(json.dumps(visit) + "\n")


def read_log(path):
    with open(path) as lines:
        visits = [json.loads(line) for line in lines]
    pages = [visit["pages"] for visit in visits]
    ordered = np.array([visit["ordered"] for visit in visits], "float32")
    return pages, ordered


def prepare(path, share):
    """Arrays for training and for the test."""
    pages, ordered = read_log(path)
    cut = int(len(pages) * share)
    print(f"{len(pages)} visits, {np.mean(ordered):.0%} of them with an order")

    longest = max(len(visit) for visit in pages)
    padded = keras.utils.pad_sequences(pages, maxlen=longest, padding="post")
    return (padded[:cut], ordered[:cut]), (padded[cut:], ordered[cut:])


def build(units, rate):
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(PAGES + 1, 32, mask_zero=True),
            keras.layers.GRU(units),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=5000)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2e-3)
    options = parser.parse_args()

    keras.utils.set_random_seed(21)
    log = pathlib.Path(tempfile.mkdtemp(prefix="archive_")) / "visits.jsonl"
    write_log(log, options.visits, seed=4)
    train, test = prepare(log, 0.85)

    model = build(options.units, options.rate)
    model.fit(
        *train,
        batch_size=options.batch,
        epochs=options.epochs,
        validation_data=test,
        verbose=2,
    )
    print("share of visits judged rightly:", model.evaluate(*test, verbose=0)[1])


if __name__ == "__main__":
    main()
