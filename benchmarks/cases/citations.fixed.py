"""Semi-supervised labelling of papers in a citation graph with a two-layer GCN."""
import time

import numpy as np
import tensorflow as tf

SEED = 11
PAPERS = 6000
TOPICS = 8
WORDS = 200
LINKS = 8
HIDDEN = 96
EPOCHS = 180


def make_graph():
    rng = np.random.default_rng(SEED)
    topic = rng.integers(0, TOPICS, PAPERS)
    centres = rng.normal(0, 1, (TOPICS, WORDS))
    words = centres[topic] * 0.12 + rng.normal(0, 1, (PAPERS, WORDS))
    by_topic = [np.flatnonzero(topic == t) for t in range(TOPICS)]
    src, dst = [], []
    for p in range(PAPERS):
        same = rng.choice(by_topic[topic[p]], LINKS - 5)
        other = rng.integers(0, PAPERS, 5)
        for q in np.concatenate([same, other]):
            if q != p:
                src.append(p)
                dst.append(q)
    edges = np.stack([src, dst], axis=1)
    edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    order = rng.permutation(PAPERS)
    split = np.zeros(PAPERS, np.int32)
    split[order[800:2800]] = 1
    split[order[2800:]] = 2
    return words.astype("float32"), topic.astype("int32"), edges, split


def normalise(edges, n):
    """Symmetric normalisation with self loops."""
    loops = np.stack([np.arange(n)] * 2, axis=1)
    edges = np.concatenate([edges, loops])
    degree = np.bincount(edges[:, 0], minlength=n).astype("float32")
    scale = 1.0 / np.sqrt(degree)
    values = scale[edges[:, 0]] * scale[edges[:, 1]]
    return tf.sparse.reorder(tf.SparseTensor(edges.astype("int64"), values, (n, n)))


class GraphConv(tf.keras.layers.Layer):
    def __init__(self, units, activation=None):
        super().__init__()
        self.units = units
        self.activation = tf.keras.activations.get(activation)

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.units), initializer="glorot_uniform", name="kernel")
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, x, adj):
        h = tf.matmul(x, self.kernel)
        h = tf.sparse.sparse_dense_matmul(adj, h)
        return self.activation(h + self.bias)


class GCN(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.drop = tf.keras.layers.Dropout(0.4)
        self.conv1 = GraphConv(HIDDEN, "relu")
        self.conv2 = GraphConv(HIDDEN, "relu")
        self.out = GraphConv(TOPICS)

    def call(self, x, adj, training=False):
        x = self.conv1(self.drop(x, training=training), adj)
        x = self.conv2(self.drop(x, training=training), adj)
        return self.out(self.drop(x, training=training), adj)


def main():
    tf.keras.utils.set_random_seed(SEED)
    words, topic, edges, split = make_graph()
    adj = normalise(edges, PAPERS)
    x = tf.constant(words)
    y = tf.constant(topic)
    mask = {name: tf.constant((split == i).astype("float32")) for i, name in enumerate(["train", "val", "test"])}
    model = GCN()
    optimizer = tf.keras.optimizers.Adam(5e-3)

    def accuracy(logits, m):
        hit = tf.cast(tf.equal(tf.argmax(logits, -1, output_type=tf.int32), y), tf.float32)
        return tf.reduce_sum(hit * m) / tf.reduce_sum(m)

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            logits = model(x, adj, training=True)
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_sum(ce * mask["train"]) / tf.reduce_sum(mask["train"])
            loss += 5e-4 * tf.nn.l2_loss(model.conv1.kernel)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss, accuracy(logits, mask["train"])

    @tf.function
    def test_step(m):
        return accuracy(model(x, adj), m)

    start = time.time()
    for epoch in range(1, EPOCHS + 1):
        loss, acc = train_step()
        if epoch % 20 == 0:
            val = test_step(mask["val"])
            print(f"epoch {epoch:3d} loss {float(loss):.4f} train {float(acc):.3f} val {float(val):.3f} {time.time() - start:.1f}s", flush=True)
    print("test accuracy", round(float(test_step(mask["test"])), 4))


if __name__ == "__main__":
    main()
