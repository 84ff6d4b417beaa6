# cause: none
"""Five-fold cross-validation of a tabular regressor: all five networks are trained side by side in one batched product."""
import time

import numpy as np
import tensorflow as tf

FOLDS = 5
ROWS = 40000
NUMERIC = 24
CITIES = 300
UNITS = 256
BATCH = 256
EPOCHS = 60


def make_table(seed=9):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (ROWS, NUMERIC)).astype("float32")
    city = rng.integers(0, CITIES, ROWS).astype("int32")
    effect = rng.normal(0, 0.7, CITIES)
    y = np.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2] - 0.5 * np.abs(x[:, 3]) + effect[city] + rng.normal(0, 0.3, ROWS)
    fold = rng.permutation(ROWS) % FOLDS
    return x, city, y.astype("float32"), fold.astype("int32")


class SideBySide(tf.Module):
    """FOLDS networks of the same shape; the first axis of each weight is the network."""

    def __init__(self, seed=1):
        super().__init__()
        init = tf.keras.initializers.GlorotUniform(seed)
        wide = NUMERIC + 16

        def weight(a, b):
            return tf.Variable(tf.stack([init((a, b)) for _ in range(FOLDS)]))

        self.city = tf.Variable(tf.random.normal((CITIES, FOLDS, 16), stddev=0.05))
        self.w = [weight(wide, UNITS), weight(UNITS, UNITS), weight(UNITS, 1)]
        self.b = [tf.Variable(tf.zeros((FOLDS, 1, n))) for n in (UNITS, UNITS, 1)]

    def __call__(self, x, city):
        """x: networks, rows, columns. Returns networks, rows."""
        table = tf.transpose(self.city, (1, 0, 2))
        h = tf.concat([x, tf.gather(table, city, batch_dims=1)], axis=-1)
        for w, b in zip(self.w[:-1], self.b[:-1]):
            h = tf.nn.relu(tf.matmul(h, w) + b)
        return tf.squeeze(tf.matmul(h, self.w[-1]) + self.b[-1], -1)


def main():
    tf.keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    x, city, y, fold = make_table()
    train_rows = np.stack([np.flatnonzero(fold != k) for k in range(FOLDS)])
    held_rows = np.stack([np.flatnonzero(fold == k) for k in range(FOLDS)])
    xt, ct, yt = tf.constant(x), tf.constant(city), tf.constant(y)
    nets = SideBySide()
    optimizer = tf.keras.optimizers.SGD(0.02, momentum=0.9)
    optimizer.build(nets.trainable_variables)

    @tf.function
    def train_epoch(order):
        total = tf.zeros(FOLDS)
        steps = tf.shape(order)[0]
        for i in tf.range(steps):
            rows = order[i]
            with tf.GradientTape() as tape:
                guess = nets(tf.gather(xt, rows), tf.gather(ct, rows))
                per_net = tf.reduce_mean(tf.square(guess - tf.gather(yt, rows)), axis=1)
                loss = tf.reduce_sum(per_net)
            grads = tape.gradient(loss, nets.trainable_variables)
            optimizer.apply_gradients(zip(grads, nets.trainable_variables))
            total += per_net
        return total / tf.cast(steps, tf.float32)

    @tf.function
    def held_error(rows):
        guess = nets(tf.gather(xt, rows), tf.gather(ct, rows))
        return tf.reduce_mean(tf.square(guess - tf.gather(yt, rows)), axis=1)

    steps = train_rows.shape[1] // BATCH
    held = tf.constant(held_rows)
    for epoch in range(EPOCHS):
        start = time.time()
        order = rng.permuted(train_rows, axis=1)[:, :steps * BATCH]
        order = order.reshape(FOLDS, steps, BATCH).transpose(1, 0, 2)
        train = train_epoch(tf.constant(order)).numpy()
        test = held_error(held).numpy()
        print(f"epoch {epoch + 1}: train {train.mean():.3f} held out {np.round(test, 3)} {time.time() - start:.1f}s", flush=True)
    print(f"cross-validated error {test.mean():.4f} +- {test.std():.4f}")


if __name__ == "__main__":
    main()
