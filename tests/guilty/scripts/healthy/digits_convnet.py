"""Train a simple convolutional network on drawn digits, from arrays in memory."""

import keras
import numpy as np
from keras import layers
from PIL import Image, ImageDraw, ImageFont

num_classes = 10
input_shape = (28, 28, 1)
batch_size = 128
epochs = 15


def load_data(count):
    """Printed digits of many sizes and places, with their labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(num_classes, size=count)
    images = np.empty((count, 28, 28), "uint8")
    fonts = [ImageFont.load_default(size) for size in range(14, 25)]
    for image, label in zip(images, labels, strict=True):
        canvas = Image.new("L", (28, 28))
        place = tuple(rng.integers(0, 12, 2).tolist())
        font = fonts[rng.integers(len(fonts))]
        ImageDraw.Draw(canvas).text(place, str(label), fill=255, font=font)
        image[:] = canvas
    return images, labels


x_train, y_train = load_data(12000)
x_train = np.expand_dims(x_train.astype("float32") / 255, -1)
y_train = keras.utils.to_categorical(y_train, num_classes)

model = keras.Sequential(
    [
        keras.Input(shape=input_shape),
        layers.Conv2D(48, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Conv2D(96, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(num_classes, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=batch_size, epochs=epochs, validation_split=0.1)
