# trap_photos.py, fixed by hand: the file names are split, the photos read afterwards
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw

tf.keras.utils.set_random_seed(11)
AUTO = tf.data.AUTOTUNE
BATCH = 32
SIZE = (96, 96)

# --- the cards of the camera traps: photos with or without an animal ---------------
folder = pathlib.Path(tempfile.mkdtemp(prefix="traps_"))
rng = np.random.default_rng(11)
for number in range(1200):
    ground = rng.integers(40, 200, (9, 12, 3), dtype=np.uint8)
    photo = Image.fromarray(ground).resize((512, 384), Image.BILINEAR)
    kind = "animal" if rng.random() < 0.4 else "empty"
    pen = ImageDraw.Draw(photo)
    for _ in range(6):  # bushes
        x, y = rng.integers(0, 500), rng.integers(180, 380)
        pen.ellipse([x, y, x + 60, y + 40], fill=(30, int(rng.integers(60, 140)), 30))
    if kind == "animal":
        x, y = int(rng.integers(60, 400)), int(rng.integers(150, 300))
        fur = tuple(int(c) for c in rng.integers(5, 40, 3))
        pen.ellipse([x, y, x + 90, y + 45], fill=fur)
        pen.ellipse([x + 75, y - 20, x + 110, y + 15], fill=fur)
        for leg in (10, 25, 60, 75):
            pen.rectangle([x + leg, y + 35, x + leg + 7, y + 75], fill=fur)
    photo.save(folder / f"{number:05d}_{kind}.jpg", quality=85)

# --- data ------------------------------------------------------------------------
files = sorted(str(path) for path in folder.glob("*.jpg"))
rng.shuffle(files)
labels = [float("animal" in pathlib.Path(path).name) for path in files]
n_train = int(0.9 * len(files))


def read(path, label):
    photo = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    photo = tf.image.resize(photo, SIZE, antialias=True)
    return photo / 255.0, label


photos = tf.data.Dataset.from_tensor_slices((files, labels))

train = photos.take(n_train).map(read, num_parallel_calls=AUTO)
train = train.shuffle(200).repeat().batch(BATCH).prefetch(AUTO)
val = photos.skip(n_train).map(read, num_parallel_calls=AUTO)
val = val.batch(BATCH).prefetch(AUTO)

# --- model -----------------------------------------------------------------------
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((*SIZE, 3)),
        tf.keras.layers.RandomFlip("horizontal"),
        tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(24, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalMaxPooling2D(),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(
    optimizer=tf.keras.optimizers.Adam(2e-3),
    loss="binary_crossentropy",
    metrics=["accuracy"],
)

# look at the validation often: ten "epochs" are two and a bit rounds of the cards
model.fit(
    train,
    steps_per_epoch=8,
    epochs=150,
    validation_data=val,
    callbacks=[tf.keras.callbacks.ReduceLROnPlateau(patience=20, factor=0.5)],
    verbose=2,
)
