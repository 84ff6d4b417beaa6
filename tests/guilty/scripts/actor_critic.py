"""Train an actor and a critic to balance poles on carts, many carts at once."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

CARTS = 16
STEPS_PER_UPDATE = 8
UPDATES = 5000
GAMMA = 0.99
ENTROPY_WEIGHT = 0.01
VALUE_WEIGHT = 0.5
LOG_EVERY = 100


class PoleCarts:
    """A row of carts, each with a pole; a cart whose pole falls starts again."""

    GRAVITY, LENGTH, FORCE, TAU = 9.8, 0.5, 10.0, 0.02

    def __init__(self, count, seed=0):
        self.rng = np.random.default_rng(seed)
        self.states = self.new(count)
        self.ages = np.zeros(count, int)
        self.finished = []

    def new(self, count):
        return self.rng.uniform(-0.05, 0.05, (count, 4)).astype("float32")

    def step(self, actions):
        x, speed, angle, spin = self.states.T
        force = np.where(actions == 1, self.FORCE, -self.FORCE)
        sin, cos = np.sin(angle), np.cos(angle)
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = self.GRAVITY * sin - cos * push
        turn /= self.LENGTH * (4 / 3 - 0.1 * cos**2 / 1.1)
        pull = push - 0.05 * turn * cos / 1.1
        change = np.stack([speed, pull, spin, turn], axis=1)
        self.states = (self.states + self.TAU * change).astype("float32")
        self.ages += 1
        x, _, angle, _ = self.states.T
        done = (np.abs(x) > 2.4) | (np.abs(angle) > 0.21) | (self.ages >= 500)
        self.finished.extend(self.ages[done])
        self.states[done] = self.new(done.sum())
        self.ages[done] = 0
        return self.states, np.ones(len(done), "float32"), done


class ActorCritic(keras.Model):
    def __init__(self, actions=2, hidden=128):
        super().__init__()
        self.body = keras.Sequential(
            [layers.Dense(hidden, activation="tanh") for _ in range(2)]
        )
        self.actor = layers.Dense(actions)
        self.critic = layers.Dense(1)

    def call(self, states):
        hidden = self.body(states)
        return self.actor(hidden), self.critic(hidden)[:, 0]


model = ActorCritic()
model(tf.zeros((1, 4)))
optimizer = keras.optimizers.Adam(3e-3, clipnorm=0.5)
optimizer.build(model.trainable_variables)


def choose_actions(states):
    logits, _ = model(states)
    return tf.random.categorical(logits, 1)[:, 0]


def update(states, actions, returns):
    with tf.GradientTape() as tape:
        logits, values = model(states)
        log_probs = tf.nn.log_softmax(logits)
        taken = tf.gather(log_probs, actions, batch_dims=1)
        advantage = tf.stop_gradient(returns - values)
        entropy = -tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=1)
        loss = -tf.reduce_mean(taken * advantage + ENTROPY_WEIGHT * entropy)
        loss += VALUE_WEIGHT * tf.reduce_mean((returns - values) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def discount(rewards, dones, last_values):
    """What each state was worth: the rewards after it, the later the less."""
    returns = np.empty_like(rewards)
    value = last_values
    for t in reversed(range(len(rewards))):
        value = rewards[t] + GAMMA * value * ~dones[t]
        returns[t] = value
    return returns


def train():
    carts = PoleCarts(CARTS)
    states = carts.states
    for number in range(1, UPDATES + 1):
        seen, taken, rewards, dones = [], [], [], []
        for _ in range(STEPS_PER_UPDATE):
            actions = choose_actions(states).numpy()
            seen.append(states)
            taken.append(actions)
            states, reward, done = carts.step(actions)
            rewards.append(reward)
            dones.append(done)
        last_values = model(states)[1].numpy()
        returns = discount(np.stack(rewards), np.stack(dones), last_values)
        loss = update(np.concatenate(seen), np.concatenate(taken), returns.ravel())
        if number % LOG_EVERY == 0:
            lengths = np.mean(carts.finished[-100:])
            print(f"update {number}: loss {loss:.3f}, mean length {lengths:.0f}")


if __name__ == "__main__":
    train()
