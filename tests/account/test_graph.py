"""Names in traces, and whose they are."""

import pytest

from perfkit.account.graph import Charged, Graphs

MINE = "train.py"
STEP, PREDICT, DATASET = "one_step_on_data", "predict_step", "Dataset_map_decode_41"
DENSE, DENSE_1, CONV = (MINE, 10), (MINE, 11), (MINE, 12)
ADAM, LOSS, COMPILED, FIT, LINE = (
    *((MINE, 20), (MINE, 21)),
    *((MINE, 22), (MINE, 30), (MINE, 40)),
)
AUC = (MINE, 23)
MADE = {
    ("layer", "dense"): DENSE,
    ("layer", "dense_1"): DENSE_1,
    ("layer", "conv2d"): CONV,
    ("optimizer", "adam"): ADAM,
    ("loss", "my_loss"): LOSS,
    ("metric", "auc"): AUC,
    ("compile", ""): COMPILED,
}


def in_fit(elements=0, part=""):
    return [FIT, 0, True, elements, part]


def at(place, layers=0, elements=0):
    return [list(place), layers, False, elements, ""]


STEPS = {
    "sequential/dense/MatMul": in_fit(640),
    "sequential/dense_1/MatMul": in_fit(),
    "sequential/conv2d/Conv2D": in_fit(),
    "adam/AddV2": in_fit(9000),
    "compile_loss/my_loss/Mean": in_fit(),
    "compile_loss/mse/sub": in_fit(),
    "compile_loss/truediv": in_fit(),
    "compile_metrics/auc/Sum": in_fit(),
    "compile_metrics/accuracy/Equal": in_fit(),
    "my_scope/Sin": at(LINE),
    "my_scope/Mul": at(LINE),
    "while/body/Sin": at(LINE),
    "Library": [None, 0, False, 0, ""],
}


@pytest.fixture
def graphs():
    return Graphs(
        {
            PREDICT: {
                "sequential/dense/MatMul": at((MINE, 50)),
                "Only": at((MINE, 51)),
            },
            DATASET: {"decode/Png": at((MINE, 60)), "my_scope/Sin": at((MINE, 61))},
            STEP: STEPS,
        },
        MADE,
        frozenset({STEP}),
    )


def whose(graphs, name, function="", *, of_input=False):
    return graphs.charge(name, function, of_input=of_input)


def test_what_keras_traced_in_fit_belongs_to_the_line_of_its_layer(graphs):
    assert whose(graphs, "sequential/dense/MatMul") == Charged(DENSE, "layer", "dense")
    found = whose(graphs, "sequential/dense_1/MatMul")
    assert found == Charged(DENSE_1, "layer", "dense_1")


def test_an_operation_of_the_users_own_belongs_to_its_line(graphs):
    assert whose(graphs, "my_scope/Sin") == Charged(LINE)


@pytest.mark.parametrize(
    "name",
    [
        "PartitionedCall/sequential/conv2d/Conv2D",
        "StatefulPartitionedCall/sequential/conv2d/Conv2D",
        "StatefulPartitionedCall_2/PartitionedCall/sequential/conv2d/Conv2D",
        "while/body/_12/sequential/conv2d/Conv2D",
        "StatefulPartitionedCall/while/body/_1/StatefulPartitionedCall/sequential/"
        "conv2d/Conv2D",
        "cond/then/_3/sequential/conv2d/Conv2D",
        "ArithmeticOptimizer/sequential/conv2d/Conv2D",
        "sequential/conv2d/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer",
    ],
)
def test_a_name_is_found_wherever_its_function_was_put(graphs, name):
    assert whose(graphs, name).place == CONV


def test_a_gradient_is_the_backward_pass_of_its_forward_operation(graphs):
    for name in (
        "gradient_tape/sequential/dense/MatMul/MatMul_1",
        "StatefulPartitionedCall/gradient_tape/sequential/dense/MatMul/MatMul",
    ):
        assert whose(graphs, name) == Charged(DENSE, "layer", "dense", True)
    found = whose(graphs, "gradient_tape/my_scope/Sin/Cos")
    assert (found.place, found.backward) == (LINE, True)
    # Its forward operation may be gone, or be called otherwise.
    found = whose(graphs, "gradient_tape/sequential/conv2d/Gone/Sum")
    assert found == Charged(CONV, "layer", "conv2d", True)
    found = whose(graphs, "gradient_tape/my_scope/Gone/Sum")
    assert (found.place, found.backward) == (LINE, True)
    assert whose(graphs, "gradient_tape/gone") == Charged(None)


def test_an_operation_of_a_known_scope_that_nobody_traced_is_its_scopes(graphs):
    # Such as one that several others were fused into.
    fused = whose(graphs, "sequential/dense/BiasAdd/fused")
    assert fused == Charged(DENSE, "layer", "dense")
    assert whose(graphs, "my_scope/Fused").place == LINE


def test_scopes_that_were_all_entered_twice_are_read_without_their_numbers():
    made = MADE | {("layer", "model"): (MINE, 5)}
    twice = {"model_1/dense_1/MatMul": in_fit(), "model_1/dense_1_1/MatMul": in_fit()}
    graphs = Graphs({STEP: twice}, made, frozenset({STEP}))
    assert whose(graphs, "model_1/dense_1/MatMul").place == DENSE
    assert whose(graphs, "model_1/dense_1_1/MatMul").place == DENSE_1


def test_a_layer_that_is_called_by_a_line_of_a_model_is_the_lines_that_made_it():
    # The line calls a model of two layers, one within the other.
    calls = {"model/dense/MatMul": at(LINE, 2), "model/odd/MatMul": at(LINE, 2)}
    one = {"dense/MatMul": at(LINE, 1), "odd/Sin": at(LINE, 1)}
    graphs = Graphs({"f": calls, "g": one}, MADE, frozenset())
    assert whose(graphs, "model/dense/MatMul") == Charged(DENSE, "layer", "dense")
    assert whose(graphs, "model/odd/MatMul") == Charged(LINE)
    # A layer of the user's own computes in lines of its own.
    assert whose(graphs, "dense/MatMul", "g") == Charged(LINE, "layer", "dense")
    assert whose(graphs, "odd/Sin", "g") == Charged(LINE)


def test_the_optimizer_the_loss_and_the_metrics_belong_to_who_made_them(graphs):
    assert whose(graphs, "adam/AddV2") == Charged(ADAM, "optimizer", "adam")
    assert whose(graphs, "compile_loss/my_loss/Mean") == Charged(
        LOSS, "loss", "my_loss"
    )
    assert whose(graphs, "compile_metrics/auc/Sum") == Charged(AUC, "metric", "auc")
    # What was named by a text is made by `compile`.
    assert whose(graphs, "compile_loss/mse/sub") == Charged(COMPILED, "loss", "mse")
    assert whose(graphs, "compile_loss/truediv") == Charged(COMPILED, "loss", "")
    found = whose(graphs, "compile_metrics/accuracy/Equal")
    assert found == Charged(COMPILED, "metric", "accuracy")


def test_of_two_models_the_function_that_ran_tells_which(graphs):
    name = "sequential/dense/MatMul"
    assert whose(graphs, name, PREDICT).place == (MINE, 50)
    assert whose(graphs, name, STEP).place == DENSE
    # Nothing known, the one that trains is the likeliest.
    assert whose(graphs, name).place == DENSE
    assert whose(graphs, "Only").place == (MINE, 51)


def test_what_the_input_runs_is_looked_for_among_its_functions(graphs):
    assert whose(graphs, "decode/Png", of_input=True).place == (MINE, 60)
    assert whose(graphs, "my_scope/Sin", of_input=True).place == (MINE, 61)
    assert whose(graphs, "my_scope/Sin", of_input=False).place == LINE
    # A scope of the model says nothing of what the input does.
    assert whose(graphs, "sequential/dense/X", of_input=True) == Charged(None)


def test_what_nobody_knows_is_nobodys(graphs):
    assert whose(graphs, "unknown/Op") == Charged(None)
    assert whose(graphs, "Library") == Charged(None)
    assert whose(graphs, "") == Charged(None)
    assert whose(Graphs({}, {}, frozenset()), "gradient_tape/x/y") == Charged(None)


def test_the_elements_of_a_result_are_told(graphs):
    assert graphs.elements("adam/AddV2", STEP) == 9000
    assert graphs.elements("StatefulPartitionedCall/adam/AddV2", STEP) == 9000
    assert graphs.elements("unknown", STEP) == 0
