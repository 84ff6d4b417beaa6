# cause: `tf.convert_to_tensor` walks through a list of NumPy screens number by number.
# expect: 5.6 times as fast (each step or epoch)
# report: tensorflow/tensorflow#44555
# lines: 116
"""Catch falling fruit with an advantage actor-critic that sees the screen only."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SIDE, STACK, ACTIONS = 48, 4, 3
ENVS, HORIZON, UPDATES = 6, 10, 6000
GAMMA, ENTROPY = 0.97, 0.01


class FruitGame:
    """A bowl at the bottom of the screen; one fruit at a time falls from the top."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.history = np.zeros((SIDE, SIDE, STACK), "float32")
        self.reset()

    def reset(self):
        self.bowl = SIDE // 2
        self.fruit_y, self.fruit_x = 0, int(self.rng.integers(4, SIDE - 4))
        self.drift = int(self.rng.integers(-1, 2))

    def draw(self):
        screen = np.zeros((SIDE, SIDE), "float32")
        screen[-4:, max(self.bowl - 5, 0) : self.bowl + 5] = 0.6
        y, x = self.fruit_y, self.fruit_x
        screen[max(y - 2, 0) : y + 2, max(x - 2, 0) : x + 2] = 1.0
        return screen

    def observe(self):
        self.history = np.roll(self.history, -1, axis=-1)
        self.history[..., -1] = self.draw()
        return self.history.copy()

    def step(self, action):
        self.bowl = int(np.clip(self.bowl + 4 * (action - 1), 5, SIDE - 5))
        self.fruit_y += 3
        self.fruit_x = int(np.clip(self.fruit_x + self.drift, 2, SIDE - 2))
        if self.fruit_y < SIDE - 4:
            return 0.0, False
        reward = 1.0 if abs(self.fruit_x - self.bowl) < 6 else -1.0
        self.reset()
        return reward, True


def build_network():
    screen = keras.Input((SIDE, SIDE, STACK))
    x = layers.Conv2D(16, 8, strides=4, activation="relu")(screen)
    x = layers.Conv2D(32, 4, strides=2, activation="relu")(x)
    x = layers.Dense(128, activation="relu")(layers.Flatten()(x))
    return keras.Model(screen, [layers.Dense(ACTIONS)(x), layers.Dense(1)(x)])


network = build_network()
optimizer = keras.optimizers.RMSprop(7e-4, clipnorm=0.5)
optimizer.build(network.trainable_variables)


@tf.function
def choose(screens):
    logits, values = network(screens)
    return tf.random.categorical(logits, 1)[:, 0], values[:, 0]


@tf.function
def learn(screens, actions, returns):
    with tf.GradientTape() as tape:
        logits, values = network(screens, training=True)
        advantage = returns - values[:, 0]
        log_p = tf.nn.log_softmax(logits)
        taken = tf.reduce_sum(log_p * tf.one_hot(actions, ACTIONS), axis=1)
        policy = -tf.reduce_mean(taken * tf.stop_gradient(advantage))
        entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * log_p, axis=1))
        loss = policy + 0.5 * tf.reduce_mean(advantage**2) - ENTROPY * entropy
    gradients = tape.gradient(loss, network.trainable_variables)
    optimizer.apply_gradients(zip(gradients, network.trainable_variables))
    return loss


def discount(rewards, ends, last):
    returns = np.zeros_like(rewards)
    for t in reversed(range(HORIZON)):
        last = rewards[t] + GAMMA * last * (1 - ends[t])
        returns[t] = last
    return returns.reshape(-1)


def play(games, current):
    """HORIZON moves in every game; what was seen, done and won."""
    screens, actions = [], []
    rewards = np.zeros((HORIZON, ENVS), "float32")
    ends = np.zeros((HORIZON, ENVS), "float32")
    for t in range(HORIZON):
        moves = choose(np.stack(current))[0].numpy()
        screens.extend(current)
        actions.extend(moves)
        for e, game in enumerate(games):
            rewards[t, e], ends[t, e] = game.step(moves[e])
        current = [game.observe() for game in games]
    last = choose(np.stack(current))[1].numpy()
    return current, screens, actions, discount(rewards, ends, last), rewards.sum()


def main():
    games, score = [FruitGame(seed) for seed in range(ENVS)], 0.0
    current = [game.observe() for game in games]
    for update in range(1, UPDATES + 1):
        current, screens, actions, returns, won = play(games, current)
        batch = tf.convert_to_tensor(screens, dtype=tf.float32)
        loss = learn(batch, tf.constant(np.array(actions)), tf.constant(returns))
        score = 0.98 * score + 0.02 * won
        if update % 20 == 0:
            print(f"update {update}: loss {float(loss):.3f}, score {score:.2f}")


if __name__ == "__main__":
    main()
