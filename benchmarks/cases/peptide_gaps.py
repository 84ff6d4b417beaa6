# cause: none, this training is healthy
# fix: none
# expect: nothing to gain; nearly all the time goes into the matrix products of the blocks
# form: PyDataset that masks whole batches with NumPy, subclassed transformer with train_step,
#       warm-up schedule, fit, flat script
# report: none
# lines: none
"""Fill the gaps in peptide sequences: a small masked language model for proteomics."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(30)

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
PAD, GAP = 0, len(RESIDUES) + 1
LENGTH, WIDTH, HEADS, DEPTH = 40, 128, 4, 2
BATCH, STEPS, EPOCHS = 64, 40, 25


def peptides(number, rng):
    """Chains that follow a habit of neighbouring residues, cut behind K and R as trypsin does."""
    habit = rng.dirichlet(np.full(20, 0.12), 20).cumsum(axis=-1)
    chain = rng.integers(0, 20, (number, LENGTH))
    for i in range(1, LENGTH):
        threshold = habit[chain[:, i - 1]]
        chain[:, i] = (rng.random((number, 1)) > threshold).sum(axis=1).clip(0, 19)
    cuts = (chain == RESIDUES.index("K")) | (chain == RESIDUES.index("R"))
    cuts[:, : LENGTH // 2] = False
    end = np.where(cuts.any(axis=1), cuts.argmax(axis=1), LENGTH - 1)
    return np.where(np.arange(LENGTH) <= end[:, None], chain + 1, PAD).astype("int32")


class Gapped(keras.utils.PyDataset):
    """Batches of (sequence with gaps, sequence, where the gaps are)."""

    def __init__(self, chains, steps, rng, **kwargs):
        super().__init__(**kwargs)
        self.chains, self.steps, self.rng = chains, steps, rng

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        chain = self.chains[self.rng.integers(0, len(self.chains), BATCH)]
        gap = (self.rng.random(chain.shape) < 0.15) & (chain != PAD)
        return np.where(gap, GAP, chain), chain, gap.astype("float32")


class Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attend = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
        self.wide = layers.Dense(4 * WIDTH, activation="relu")
        self.narrow = layers.Dense(WIDTH)
        self.before, self.between = layers.LayerNormalization(), layers.LayerNormalization()

    def call(self, x, there):
        y = self.before(x)
        x = x + self.attend(y, y, attention_mask=there)
        return x + self.narrow(self.wide(self.between(x)))


class GapFiller(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.letters = layers.Embedding(GAP + 1, WIDTH)
        self.places = layers.Embedding(LENGTH, WIDTH)
        self.blocks = [Block() for _ in range(DEPTH)]
        self.last = layers.LayerNormalization()
        self.scores = layers.Dense(GAP)
        self.loss_mean = keras.metrics.Mean(name="loss")
        self.right = keras.metrics.Mean(name="right")

    @property
    def metrics(self):
        return [self.loss_mean, self.right]

    def call(self, chain):
        there = ops.not_equal(chain, PAD)[:, None, :]
        x = self.letters(chain) + self.places(ops.arange(LENGTH))
        for block in self.blocks:
            x = block(x, there)
        return self.scores(self.last(x))

    def judge(self, chain, gap, scores):
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=chain, logits=scores)
        loss = tf.reduce_sum(each * gap) / (tf.reduce_sum(gap) + 1e-6)
        hit = tf.cast(tf.equal(tf.argmax(scores, -1, output_type=tf.int32), chain), tf.float32)
        self.right.update_state(hit, sample_weight=gap)
        self.loss_mean.update_state(loss)
        return loss

    def train_step(self, data):
        gapped, chain, gap = data
        with tf.GradientTape() as tape:
            loss = self.judge(chain, gap, self(gapped, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {metric.name: metric.result() for metric in self.metrics}

    def test_step(self, data):
        gapped, chain, gap = data
        self.judge(chain, gap, self(gapped, training=False))
        return {metric.name: metric.result() for metric in self.metrics}


rng = np.random.default_rng(30)
chains = peptides(12_000, rng)
train = Gapped(chains[:11_500], STEPS, rng)
held_out = Gapped(chains[11_500:], 4, np.random.default_rng(31))

model = GapFiller()
model.compile(
    optimizer=keras.optimizers.AdamW(
        keras.optimizers.schedules.CosineDecay(
            0.0, STEPS * EPOCHS, warmup_target=2e-3, warmup_steps=40
        ),
        global_clipnorm=1.0,
    )
)
model.fit(train, validation_data=held_out, epochs=EPOCHS, verbose=2)
