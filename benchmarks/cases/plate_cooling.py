# cause: none, this training is healthy
# fix: none
# expect: nothing to gain by a fix; nothing here is to be called a defect
# form: physics-informed net: second derivatives by nested tapes, a material constant learnt
#       beside the weights, fifty steps in one call of a tf.function, no fit and no data set
# report: the form is that of public PINN codes
# lines: none
"""How well does this steel conduct heat? Estimated from thermocouples on a cooling plate."""

import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf

TRUE_DIFFUSIVITY = 0.12
POINTS = 3072
ROUNDS, STEPS = 90, 50

folder = pathlib.Path(tempfile.mkdtemp(prefix="plate_"))
rng = np.random.default_rng(6)


def exact(x, y, t):
    """Two modes of the unit plate whose edges are kept at zero."""
    slow = np.sin(np.pi * x) * np.sin(np.pi * y)
    fast = 0.5 * np.sin(2 * np.pi * x) * np.sin(np.pi * y)
    decay = TRUE_DIFFUSIVITY * np.pi**2 * t
    return slow * np.exp(-2 * decay) + fast * np.exp(-5 * decay)


sensors = rng.uniform(0.1, 0.9, (24, 2))
times = np.linspace(0, 1, 41)
x, y, t = np.repeat(sensors[:, 0], 41), np.repeat(sensors[:, 1], 41), np.tile(times, 24)
log = np.column_stack([x, y, t, exact(x, y, t) + rng.normal(0, 0.01, x.size)])
np.savetxt(folder / "thermocouples.csv", log, "%.4f", ",", header="x,y,t,kelvin")

log = np.loadtxt(folder / "thermocouples.csv", delimiter=",", dtype="float32")
where, measured = tf.constant(log[:, :3]), tf.constant(log[:, 3:])

keras.utils.set_random_seed(1)
field = keras.Sequential(
    [keras.Input((3,))]
    + [keras.layers.Dense(72, activation="tanh") for _ in range(4)]
    + [keras.layers.Dense(1)]
)
log_diffusivity = tf.Variable(np.log(0.5), dtype=tf.float32)
variables = [weight.value for weight in field.trainable_variables] + [log_diffusivity]
optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, ROUNDS * STEPS))
optimizer.build(variables)


def imbalance(points):
    """What is left of the heat equation at these points, with the net put into it."""
    x, y, t = tf.split(points, 3, axis=1)
    with tf.GradientTape(persistent=True) as second:
        second.watch([x, y])
        with tf.GradientTape() as first:
            first.watch([x, y, t])
            u = field(tf.concat([x, y, t], axis=1))
        u_x, u_y, u_t = first.gradient(u, [x, y, t])
    u_xx, u_yy = second.gradient(u_x, x), second.gradient(u_y, y)
    return u_t - tf.exp(log_diffusivity) * (u_xx + u_yy)


def edges(count):
    along, t = tf.random.uniform((count, 1)), tf.random.uniform((count, 1))
    side = tf.cast(tf.random.uniform((count, 1)) < 0.5, tf.float32)
    half = count // 2
    left_right = tf.concat([side, along, t], axis=1)[:half]
    top_bottom = tf.concat([along, side, t], axis=1)[half:]
    return tf.concat([left_right, top_bottom], axis=0)


@tf.function
def train():
    """Fifty steps, each on new points; the losses of the last one."""
    parts = tf.zeros(3)
    for _ in tf.range(STEPS):
        with tf.GradientTape() as tape:
            physics = tf.reduce_mean(tf.square(imbalance(tf.random.uniform((POINTS, 3)))))
            border = tf.reduce_mean(tf.square(field(edges(512))))
            data = tf.reduce_mean(tf.square(field(where) - measured))
            loss = 0.05 * physics + border + 5.0 * data
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        parts = tf.stack([physics, border, data])
    return parts


for number in range(1, ROUNDS + 1):
    physics, border, data = train().numpy()
    print(
        f"round {number}: physics {physics:.2e} border {border:.2e} data {data:.2e}, "
        f"diffusivity {np.exp(log_diffusivity.numpy()):.4f}",
        flush=True,
    )
print("true diffusivity:", TRUE_DIFFUSIVITY)
