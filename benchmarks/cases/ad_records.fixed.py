# ad_records.py, fixed by hand: records are batched, then parsed together
"""Learn which advertisements are clicked, from records of counts and categories."""

import argparse
import glob
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

DENSE = [f"count_{i:02d}" for i in range(13)]
SPARSE = [f"kind_{i:02d}" for i in range(26)]
BUCKETS = 500
SPEC = {"clicked": tf.io.FixedLenFeature([], tf.int64)}
SPEC.update({name: tf.io.FixedLenFeature([], tf.float32, 0.0) for name in DENSE})
SPEC.update({name: tf.io.FixedLenFeature([], tf.string, "") for name in SPARSE})


def write_records(folder, files=5, each=4000):
    rng = np.random.default_rng(8)
    for number in range(files):
        counts = rng.exponential(3.0, (each, len(DENSE)))
        kinds = rng.zipf(1.6, (each, len(SPARSE))) % 9973
        clicked = (counts[:, 0] + (kinds[:, 3] % 7) > 6).astype(int)
        path = os.path.join(folder, f"part-{number:05d}.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(each):
                example = tf.train.Example()
                feature = example.features.feature
                feature["clicked"].int64_list.value.append(clicked[i])
                for name, value in zip(DENSE, counts[i]):
                    feature[name].float_list.value.append(value)
                for name, value in zip(SPARSE, kinds[i]):
                    feature[name].bytes_list.value.append(b"%x" % value)
                writer.write(example.SerializeToString())


def parse(records):
    fields = tf.io.parse_example(records, SPEC)
    dense = tf.stack([tf.math.log1p(fields[name]) for name in DENSE], axis=-1)
    sparse = tf.stack(
        [tf.strings.to_hash_bucket_fast(fields[name], BUCKETS) for name in SPARSE],
        axis=-1,
    )
    return dense, sparse, tf.cast(fields["clicked"], tf.float32)


def read_records(folder, batch_size):
    files = sorted(glob.glob(os.path.join(folder, "*.tfrecord")))
    data = tf.data.TFRecordDataset(files).shuffle(4000)
    data = data.batch(batch_size)
    data = data.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    return data.prefetch(tf.data.AUTOTUNE)


def build_model():
    dense = keras.Input((len(DENSE),))
    sparse = keras.Input((len(SPARSE),), dtype="int64")
    offsets = np.arange(len(SPARSE)) * BUCKETS
    x = keras.layers.Embedding(len(SPARSE) * BUCKETS, 8)(sparse + offsets)
    x = keras.layers.Concatenate()([dense, keras.layers.Flatten()(x)])
    x = keras.layers.Dense(64, activation="relu")(x)
    return keras.Model([dense, sparse], keras.layers.Dense(1)(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="clicks-")
    write_records(folder)
    data = read_records(folder, args.batch_size)
    model = build_model()
    optimizer = keras.optimizers.Adam(args.learning_rate)
    auc = keras.metrics.AUC(from_logits=True)

    @tf.function
    def train_step(dense, sparse, clicked):
        with tf.GradientTape() as tape:
            logits = model([dense, sparse], training=True)[:, 0]
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(clicked, logits)
            )
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        auc.update_state(clicked, logits)
        return loss

    for epoch in range(args.epochs):
        auc.reset_state()
        losses = [float(train_step(*batch)) for batch in data]
        print(f"epoch {epoch}: {np.mean(losses):.4f}, AUC {float(auc.result()):.3f}")


if __name__ == "__main__":
    main()
