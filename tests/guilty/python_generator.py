"""A generator turns sentences into counts of words, word by word, in Python."""

CAUSE = "python-input"
WORDS = 400


def make_training():
    import numpy as np
    import tensorflow as tf

    sentences, labels = _sentences()

    def counted():
        for sentence, label in zip(sentences, labels, strict=True):
            row = np.zeros(WORDS, np.float32)
            for word in sentence.split():
                row[int(word[1:])] += 1
            yield row, label

    shapes = (tf.TensorSpec((WORDS,), tf.float32), tf.TensorSpec((), tf.int64))
    dataset = tf.data.Dataset.from_generator(counted, output_signature=shapes)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(labels)))
    return _model(), dataset.batch(64).prefetch(2), {"verbose": 0}


def make_fixed():
    import tensorflow as tf

    sentences, labels = _sentences()
    vocabulary = tf.keras.layers.TextVectorization(
        vocabulary=[f"w{word}" for word in range(WORDS)],
        output_mode="count",
        standardize=None,
    )
    rows = tf.cast(vocabulary(tf.constant(sentences))[:, 1:], tf.float32)
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels))
    return _model(), dataset.batch(64).prefetch(2), {"verbose": 0}


def _sentences():
    import numpy as np

    random = np.random.default_rng(0)
    words = random.integers(0, WORDS, (6400, 60))
    sentences = [" ".join(f"w{word}" for word in row) for row in words]
    return sentences, random.integers(0, 10, 6400)


def _model():
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((WORDS,)),
            layers.Dense(768, "relu"),
            layers.Dense(768, "relu"),
            layers.Dense(10, "softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    return model
