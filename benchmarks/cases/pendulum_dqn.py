# cause: np.random.choice without replacement permutes all 500,000 indices of the memory for
#        each batch of 128
# fix: draw the batch with randint
# report: https://github.com/keiohta/tf2rl/issues/126
# lines: 65, 64, 128
"""DQN for swinging up many pendulums at once; experience goes to one array memory."""
import time

import numpy as np
import tensorflow as tf

ENVS = 32
ACTIONS = np.linspace(-2.0, 2.0, 7)
CAPACITY = 500_000
WARMUP = 500_000
BATCH = 128
ROUNDS = 10
STEPS = 150
UPDATES = 4
GAMMA = 0.98


class Pendulums:
    def __init__(self, n, rng):
        self.n, self.rng = n, rng
        self.angle = rng.uniform(-np.pi, np.pi, n)
        self.speed = rng.uniform(-1, 1, n)
        self.age = rng.integers(0, 200, n)

    def observe(self):
        return np.stack([np.cos(self.angle), np.sin(self.angle), self.speed / 8], axis=1).astype("float32")

    def step(self, torque):
        a = (self.angle + np.pi) % (2 * np.pi) - np.pi
        reward = -(a ** 2 + 0.1 * self.speed ** 2 + 0.001 * torque ** 2)
        self.speed = np.clip(self.speed + 0.05 * (15 * np.sin(self.angle) + 3 * torque), -8, 8)
        self.angle = self.angle + 0.05 * self.speed
        self.age += 1
        after = self.observe()
        old = self.age >= 200
        k = int(old.sum())
        if k:
            self.angle[old] = self.rng.uniform(-np.pi, np.pi, k)
            self.speed[old] = self.rng.uniform(-1, 1, k)
            self.age[old] = 0
        return after, reward.astype("float32")


class Memory:
    def __init__(self, capacity, width):
        self.obs = np.zeros((capacity, width), "float32")
        self.after = np.zeros((capacity, width), "float32")
        self.action = np.zeros(capacity, "int32")
        self.reward = np.zeros(capacity, "float32")
        self.capacity, self.place, self.size = capacity, 0, 0

    def add(self, obs, action, reward, after):
        at = (self.place + np.arange(len(obs))) % self.capacity
        self.obs[at], self.after[at] = obs, after
        self.action[at], self.reward[at] = action, reward
        self.place = (self.place + len(obs)) % self.capacity
        self.size = min(self.size + len(obs), self.capacity)

    def sample(self, n):
        at = np.random.choice(self.size, n, replace=False)
        return self.obs[at], self.action[at], self.reward[at], self.after[at]


def q_network():
    return tf.keras.Sequential([
        tf.keras.layers.Input((3,)),
        tf.keras.layers.Dense(96, activation="relu"),
        tf.keras.layers.Dense(96, activation="relu"),
        tf.keras.layers.Dense(len(ACTIONS)),
    ])


def main():
    tf.keras.utils.set_random_seed(7)
    rng = np.random.default_rng(7)
    memory = Memory(CAPACITY, 3)

    many = Pendulums(1000, rng)
    obs = many.observe()
    while memory.size < WARMUP:
        action = rng.integers(0, len(ACTIONS), many.n)
        after, reward = many.step(ACTIONS[action])
        memory.add(obs, action, reward, after)
        obs = many.observe()

    online, target = q_network(), q_network()
    target.set_weights(online.get_weights())
    optimizer = tf.keras.optimizers.Adam(5e-4)

    @tf.function
    def best_action(obs):
        return tf.argmax(online(obs), axis=1)

    @tf.function
    def update(obs, action, reward, after):
        chosen = tf.argmax(online(after), axis=1)
        value = tf.gather(target(after), chosen, batch_dims=1)
        goal = reward + GAMMA * value
        with tf.GradientTape() as tape:
            q = tf.gather(online(obs), action, batch_dims=1)
            loss = tf.reduce_mean(tf.keras.losses.huber(goal[:, None], q[:, None]))
        grads = tape.gradient(loss, online.trainable_variables)
        optimizer.apply_gradients(zip(grads, online.trainable_variables))
        for t, o in zip(target.trainable_variables, online.trainable_variables):
            t.assign_add(0.01 * (o - t))
        return loss

    world = Pendulums(ENVS, rng)
    obs = world.observe()
    for round_ in range(ROUNDS):
        start = time.time()
        explore = max(0.05, 0.5 - 0.1 * round_)
        total, losses = 0.0, []
        for _ in range(STEPS):
            action = best_action(obs).numpy()
            random = rng.random(ENVS) < explore
            action[random] = rng.integers(0, len(ACTIONS), int(random.sum()))
            after, reward = world.step(ACTIONS[action])
            memory.add(obs, action, reward, after)
            obs = world.observe()
            total += float(reward.mean())
            for _ in range(UPDATES):
                losses.append(update(*memory.sample(BATCH)))
        print(f"round {round_ + 1}: reward per step {total / STEPS:.3f} loss {np.mean([float(v) for v in losses]):.4f} {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    main()
