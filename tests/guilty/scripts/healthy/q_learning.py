"""Train a network that steers a lander by Q-learning from its memory."""

import keras
import numpy as np
import tensorflow as tf

LANDERS = 64
MEMORY = 100_000
BATCH_SIZE = 512
UPDATES = 20_000
GAMMA = 0.98
COPY_EVERY = 500


class Landers:
    """Many landers side by side: height, side and the speeds of both."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.states = self.new(LANDERS)

    def new(self, count):
        states = self.rng.normal(0, 0.3, (count, 4))
        states[:, 0] += 5
        return states.astype("float32")

    def step(self, actions):
        thrust = np.select([actions == 1, actions == 2], [0.3, 0.0], -0.1)
        side = np.select([actions == 2, actions == 3], [0.1, -0.1], 0.0)
        before = self.states
        speeds = before[:, 2:] + np.stack([thrust - 0.02, side], axis=1)
        places = before[:, :2] + 0.1 * speeds
        after = np.concatenate([places, speeds], axis=1).astype("float32")
        done = (places[:, 0] <= 0) | (np.abs(places) > 10).any(axis=1)
        landed = done & (np.abs(speeds).sum(axis=1) < 1)
        rewards = np.where(landed, 10.0, np.where(done, -10.0, -0.05))
        self.states = np.where(done[:, None], self.new(LANDERS), after)
        return before, rewards.astype("float32"), after, done


class Memory:
    """The last moves, in arrays that wrap around."""

    def __init__(self):
        self.states = np.zeros((MEMORY, 4), "float32")
        self.actions = np.zeros(MEMORY, "int32")
        self.rewards = np.zeros(MEMORY, "float32")
        self.following = np.zeros((MEMORY, 4), "float32")
        self.going = np.zeros(MEMORY, "float32")
        self.count = 0

    def add(self, states, actions, rewards, following, done):
        places = (self.count + np.arange(len(states))) % MEMORY
        self.states[places], self.actions[places] = states, actions
        self.rewards[places], self.following[places] = rewards, following
        self.going[places] = ~done
        self.count += len(states)

    def sample(self, rng):
        places = rng.integers(0, min(self.count, MEMORY), BATCH_SIZE)
        columns = (self.states, self.actions, self.rewards, self.following, self.going)
        return tuple(tf.constant(column[places]) for column in columns)


def build_network():
    return keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(4),
        ]
    )


class Agent:
    def __init__(self):
        self.network, self.target = build_network(), build_network()
        self.copy()
        self.optimizer = keras.optimizers.Adam(5e-4)
        self.optimizer.build(self.network.trainable_variables)

    def copy(self):
        self.target.set_weights(self.network.get_weights())

    @tf.function
    def act(self, states):
        return tf.argmax(self.network(states), axis=1)

    @tf.function
    def learn(self, states, actions, rewards, following, going):
        best = tf.reduce_max(self.target(following), axis=1)
        wanted = rewards + GAMMA * going * best
        with tf.GradientTape() as tape:
            values = tf.gather(self.network(states), actions, batch_dims=1)
            loss = tf.reduce_mean(keras.losses.huber(wanted[:, None], values[:, None]))
        variables = self.network.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return loss


def main():
    rng = np.random.default_rng(0)
    landers, memory, agent = Landers(), Memory(), Agent()
    losses = []
    for update in range(UPDATES):
        actions = agent.act(tf.constant(landers.states)).numpy()
        chance = max(0.05, 1 - update / 5000)
        guesses = rng.integers(0, 4, LANDERS)
        actions = np.where(rng.random(LANDERS) < chance, guesses, actions)
        states, rewards, following, done = landers.step(actions)
        memory.add(states, actions, rewards, following, done)
        losses.append(agent.learn(*memory.sample(rng)))
        if update % COPY_EVERY == 0:
            agent.copy()
            print(f"update {update}: loss {np.mean(losses):.4f}")
            losses.clear()


if __name__ == "__main__":
    main()
