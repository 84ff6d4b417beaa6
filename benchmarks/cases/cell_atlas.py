# cause: the counts stay in the CSC format in which they were exported; rows of a CSC
#        matrix can only be cut out by a walk through all of its entries, every batch
# fix: .tocsr() once after loading
# expect: 2.5 to 6 times faster an epoch
# form: a PyDataset over a scipy.sparse matrix, functional autoencoder, fit, main()
# report: https://github.com/cellgeni/sceasy/issues/69
#         https://github.com/scverse/scvi-tools/issues/835
# lines: 58, 82
"""A denoising autoencoder for the gene counts of single cells (24 000 cells)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import layers
from scipy import sparse

N_CELLS = 24_000
N_GENES = 4_000
N_TYPES = 12


def export_from_r(path: Path, seed: int = 0) -> None:
    """What the R side hands over: counts (cells x genes) and the type of each cell."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, N_TYPES, N_CELLS)
    order = np.stack([rng.permutation(N_GENES) for _ in range(N_TYPES)])
    order[:, : N_GENES // 2] = np.sort(order[:, : N_GENES // 2], axis=1)
    rank = (N_GENES * rng.random((N_CELLS, 640), dtype=np.float32) ** 1.5).astype(np.int32)
    genes = order[kind[:, None], np.minimum(rank, N_GENES - 1)]
    cells = np.repeat(np.arange(N_CELLS, dtype=np.int32), rank.shape[1])
    molecules = rng.integers(1, 4, rank.size).astype(np.float32)
    counts = sparse.coo_matrix((molecules, (cells, genes.ravel())), (N_CELLS, N_GENES))
    sparse.save_npz(path / "counts.npz", counts.tocsc(), compressed=False)
    np.save(path / "celltype.npy", kind)


class CellBatches(keras.utils.PyDataset):
    """Batches of cells: log counts per ten thousand, with dropout noise on the input."""

    def __init__(self, counts, cells, batch_size=64, noise=0.1, seed=0):
        super().__init__()
        self.counts = counts
        self.cells = np.array(cells)
        self.batch_size = batch_size
        self.noise = noise
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.cells) // self.batch_size

    def __getitem__(self, number):
        start = number * self.batch_size
        rows = self.cells[start : start + self.batch_size]
        x = self.counts[rows].toarray()
        depth = x.sum(axis=1, keepdims=True)
        x = np.log1p(x * (1e4 / np.maximum(depth, 1)))
        kept = self.rng.random(x.shape, dtype=np.float32) > self.noise
        return x * kept, x

    def on_epoch_end(self):
        self.rng.shuffle(self.cells)


def autoencoder(latent: int = 16) -> keras.Model:
    cell = layers.Input((N_GENES,))
    hidden = layers.Dense(64, activation="relu")(cell)
    hidden = layers.BatchNormalization()(hidden)
    code = layers.Dense(latent, name="code")(hidden)
    hidden = layers.Dense(64, activation="relu")(code)
    return keras.Model(cell, layers.Dense(N_GENES, activation="softplus")(hidden))


def main() -> None:
    keras.utils.set_random_seed(0)
    path = Path(tempfile.mkdtemp(prefix="atlas_"))
    export_from_r(path)

    counts = sparse.load_npz(path / "counts.npz")
    celltype = np.load(path / "celltype.npy")
    print(f"{counts.shape[0]} cells, {counts.shape[1]} genes, {counts.nnz} counts")

    # hold out a tenth of each type
    rng = np.random.default_rng(1)
    held = np.concatenate(
        [
            rng.choice(np.flatnonzero(celltype == t), (celltype == t).sum() // 10, False)
            for t in range(N_TYPES)
        ]
    )
    kept = np.setdiff1d(np.arange(N_CELLS), held)
    rng.shuffle(kept)

    model = autoencoder()
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
    model.fit(
        CellBatches(counts, kept),
        validation_data=CellBatches(counts, held, noise=0.0),
        epochs=30,
        verbose=2,
    )
    model.save(path / "atlas.keras")


if __name__ == "__main__":
    main()
