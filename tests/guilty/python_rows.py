"""A PyDataset with one worker reads each line of a table by itself, in Python."""

CAUSE = "python-input"
COLUMNS = 200


def make_training():
    import keras
    import numpy as np

    lines, labels = _table()

    class Table(keras.utils.PyDataset):
        def __len__(self):
            return len(lines) // 64

        def __getitem__(self, index):
            chosen = slice(64 * index, 64 * index + 64)
            rows = [[float(x) for x in line.split(",")] for line in lines[chosen]]
            return np.array(rows, np.float32), labels[chosen]

    return _model(), Table(), {"verbose": 0}


def make_fixed():
    import keras
    import numpy as np

    lines, labels = _table()
    rows = np.loadtxt(lines, np.float32, delimiter=",")

    class Table(keras.utils.PyDataset):
        def __len__(self):
            return len(lines) // 64

        def __getitem__(self, index):
            chosen = slice(64 * index, 64 * index + 64)
            return rows[chosen], labels[chosen]

    return _model(), Table(), {"verbose": 0}


def _table():
    import numpy as np

    random = np.random.default_rng(0)
    rows = random.standard_normal((256, COLUMNS))
    lines = [",".join(f"{number:.12f}" for number in row) for row in rows]
    return lines * 50, random.integers(0, 5, len(lines) * 50)


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [keras.Input((COLUMNS,)), layers.Dense(128, "relu"), layers.Dense(5, "softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
