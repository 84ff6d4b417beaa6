"""Two embeddings and a small network on top of them."""

import keras
from keras import layers

WIDTH = 16


def make_model(accounts, episodes):
    account = keras.Input((), dtype="int32", name="account")
    episode = keras.Input((), dtype="int32", name="episode")
    listener = layers.Embedding(accounts, WIDTH, name="listener")(account)
    content = layers.Embedding(episodes, WIDTH, name="content")(episode)
    x = layers.Concatenate()([listener, content, layers.Multiply()([listener, content])])
    x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(x)
    heard = layers.Dense(1, activation="sigmoid")(x)
    return keras.Model({"account": account, "episode": episode}, heard)
