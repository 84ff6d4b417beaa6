"""Forecast the level of a river a day ahead, month after month as one would have known it."""

# %%
import numpy as np
import pandas as pd
from tensorflow import keras
from tensorflow.keras import layers

LOOK_BACK = 14
FEATURES = ["level", "rain", "melt", "season"]
FIRST_TEST = "2012-01-01"


# %%
def simulate_river(seed=63):
    rng = np.random.default_rng(seed)
    days = pd.date_range("2009-01-01", "2016-12-31")
    season = np.sin(2 * np.pi * (days.dayofyear.to_numpy() - 80) / 365.25)
    rain = rng.gamma(0.35, 6.0, len(days))
    melt = np.clip(season, 0, None) * rng.uniform(0.5, 1.5, len(days))
    level = np.zeros(len(days))
    for day in range(1, len(days)):
        inflow = 0.02 * rain[max(0, day - 4) : day].sum() + 0.15 * melt[day - 1]
        level[day] = 0.9 * level[day - 1] + inflow + rng.normal(0, 0.02)
    return pd.DataFrame(
        {"level": level, "rain": rain / 10, "melt": melt, "season": season}, index=days
    )


def windows(table):
    values = table[FEATURES].to_numpy("float32")
    x = np.stack([values[i : i + LOOK_BACK] for i in range(len(values) - LOOK_BACK)])
    return x, values[LOOK_BACK:, 0], table.index[LOOK_BACK:]


# %%
def build_model():
    model = keras.Sequential(
        [
            layers.Input((LOOK_BACK, len(FEATURES))),
            layers.Conv1D(16, 5, activation="relu"),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="mse")
    return model


# %%
def walk_forward(x, y, dates, epochs=4):
    months = pd.period_range(FIRST_TEST, dates[-1], freq="M")
    errors = {}
    keras.utils.set_random_seed(7)
    model = build_model()
    model.optimizer.build(model.trainable_variables)
    fresh = [variable.numpy() for variable in model.variables + model.optimizer.variables]
    for month in months:
        known = dates < month.start_time
        ahead = (dates >= month.start_time) & (dates <= month.end_time)
        keras.utils.set_random_seed(7)
        for variable, value in zip(model.variables + model.optimizer.variables, fresh):
            variable.assign(value)
        model.fit(x[known], y[known], batch_size=128, epochs=epochs, verbose=0)
        forecast = model.predict(x[ahead], verbose=0)[:, 0]
        errors[str(month)] = float(np.abs(forecast - y[ahead]).mean())
        print(month, f"{errors[str(month)]:.3f}", flush=True)
    return pd.Series(errors)


# %%
river = simulate_river()
scaled = river / river[:FIRST_TEST].std()
errors = walk_forward(*windows(scaled))
print("mean absolute error:", errors.mean().round(3))
