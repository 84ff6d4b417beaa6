"""Names in traces, and whose they are."""

from dataclasses import replace

import pytest

from perfkit.training.account.graph import Charged, Graphs
from perfkit.training.account.trace import Operation

MINE = "train.py"
STEP, PREDICT, DATASET = "one_step_on_data", "predict_step", "Dataset_map_decode_41"
NAMED = (
    *(("layer", name) for name in ("dense", "dense_1", "conv2d")),
    *(("optimizer", "adam"), ("loss", "my_loss"), ("metric", "auc"), ("compile", "")),
)
MADE = {named: (MINE, line) for line, named in enumerate(NAMED, 10)}
DENSE, DENSE_1, CONV, ADAM, LOSS, AUC, COMPILED = MADE.values()
FIT, LINE = (MINE, 30), (MINE, 40)


def at(place, layers=0):
    return [place, layers, False, 0, "", ""]


IN_FIT = [FIT, 0, True, 0, "", ""]
STEPS = {
    "sequential/dense/MatMul": IN_FIT,
    "sequential/dense_1/MatMul": IN_FIT,
    "sequential/conv2d/Conv2D": IN_FIT,
    "adam/AddV2": IN_FIT,
    "compile_loss/my_loss/Mean": IN_FIT,
    "compile_loss/mse/sub": IN_FIT,
    "compile_loss/truediv": IN_FIT,
    "compile_metrics/auc/Sum": IN_FIT,
    "compile_metrics/accuracy/Equal": IN_FIT,
    "my_scope/Sin": at(LINE),
    "my_scope/Mul": at(LINE),
    "while/body/Sin": at(LINE),
    "my_scope/while": at(LINE),
    "Library": [None, 0, False, 0, "", ""],
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
    return graphs.charge(Operation(name, "", function, of_input))


OF_DENSE = Charged(DENSE, "layer", "dense")
OF_CONV = Charged(CONV, "layer", "conv2d")
NOBODYS = Charged(None)


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        # What Keras traced in `fit` belongs to the line of its layer.
        ("sequential/dense/MatMul", OF_DENSE),
        ("sequential/dense_1/MatMul", Charged(DENSE_1, "layer", "dense_1")),
        # An operation of the user's own belongs to its line.
        ("my_scope/Sin", Charged(LINE)),
        # A name is found wherever its function was put.
        ("PartitionedCall/sequential/conv2d/Conv2D", OF_CONV),
        ("StatefulPartitionedCall/while/body/_1/StatefulPartitionedCall/sequential/"
         "conv2d/Conv2D", OF_CONV),
        ("cond/then/_3/sequential/conv2d/Conv2D", OF_CONV),
        ("sequential/conv2d/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer", OF_CONV),
        # A gradient is the backward pass of its forward operation.
        ("gradient_tape/sequential/dense/MatMul/MatMul_1",
         replace(OF_DENSE, backward=True)),
        ("StatefulPartitionedCall/gradient_tape/sequential/dense/MatMul/MatMul",
         replace(OF_DENSE, backward=True)),
        ("gradient_tape/my_scope/Sin/Cos", Charged(LINE, backward=True)),
        # That may be gone, or be called otherwise.
        ("gradient_tape/sequential/conv2d/Gone/Sum", replace(OF_CONV, backward=True)),
        ("gradient_tape/my_scope/Gone/Sum", Charged(LINE, backward=True)),
        ("gradient_tape/gone", NOBODYS),
        # A loop is taken apart into operations with its name before theirs.
        ("StatefulPartitionedCall/my_scope/while/merge/_72", Charged(LINE)),
        ("my_scope/while/PartitionedCall/my_scope/Const_switch/_7", Charged(LINE)),
        # What nobody traced is its scope's, such as one that others were fused into.
        ("sequential/dense/BiasAdd/fused", OF_DENSE),
        ("my_scope/Fused", Charged(LINE)),
        # The optimizer, the loss and the metrics belong to who made them.
        ("adam/AddV2", Charged(ADAM, "optimizer", "adam")),
        ("compile_loss/my_loss/Mean", Charged(LOSS, "loss", "my_loss")),
        ("compile_metrics/auc/Sum", Charged(AUC, "metric", "auc")),
        # What was named by a text is made by `compile`.
        ("compile_loss/mse/sub", Charged(COMPILED, "loss", "mse")),
        ("compile_loss/truediv", Charged(COMPILED, "loss", "")),
        ("compile_metrics/accuracy/Equal", Charged(COMPILED, "metric", "accuracy")),
        # What nobody knows is nobody's.
        ("unknown/Op", NOBODYS),
        ("Library", NOBODYS),
        ("", NOBODYS),
    ],
)  # fmt: skip
def test_an_operation_is_somebodys_by_its_name(graphs, name, owner):
    assert whose(graphs, name) == owner


def test_a_fused_operation_is_of_the_line_of_its_product():
    steps = {"MatMul": at((MINE, 50)), "Relu": [*at((MINE, 51))[:5], "MatMul"]}
    graphs = Graphs({"f": steps}, {}, frozenset())
    for kind, line in (
        ("_MklNativeFusedMatMul", 50),
        ("_FusedConv2D", 50),
        ("Relu", 51),
    ):
        assert graphs.charge(Operation("Relu", kind, "f")).place == (MINE, line)


def test_a_sum_of_gradients_is_of_the_line_of_one_of_them(graphs):
    graphs.operations[STEP]["AddN_1"] = [*at(FIT)[:5], "gradient_tape/my_scope/Sin/Mul"]
    graphs.operations[STEP]["add"] = [*at(FIT)[:5], "gradient_tape/my_scope/Sin/Mul"]
    for kind in ("AddN", "_MklAddN"):
        added = graphs.charge(Operation("AddN_1", kind, STEP))
        assert added == Charged(LINE, backward=True)
    # What the user's own line adds to a gradient stays that line's.
    assert graphs.charge(Operation("add", "AddV2", STEP)) == Charged(FIT)


def test_a_layer_that_is_called_by_a_line_of_a_model_is_the_lines_that_made_it():
    # The line calls a model of two layers, one within the other.
    calls = {"model/dense/MatMul": at(LINE, 2), "model/odd/MatMul": at(LINE, 2)}
    one = {"dense/MatMul": at(LINE, 1), "odd/Sin": at(LINE, 1)}
    graphs = Graphs({"f": calls, "g": one}, MADE, frozenset())
    assert whose(graphs, "model/dense/MatMul") == OF_DENSE
    assert whose(graphs, "model/odd/MatMul") == Charged(LINE)
    # A layer of the user's own computes in lines of its own.
    assert whose(graphs, "dense/MatMul", "g") == Charged(LINE, "layer", "dense")
    assert whose(graphs, "odd/Sin", "g") == Charged(LINE)


def test_the_function_that_ran_tells_which_of_several_it_is(graphs):
    name = "sequential/dense/MatMul"
    assert whose(graphs, name, PREDICT).place == (MINE, 50)
    assert whose(graphs, name, STEP).place == DENSE
    # Nothing known, the one that trains is the likeliest.
    assert whose(graphs, name).place == DENSE
    assert whose(graphs, "Only").place == (MINE, 51)
    # What the input runs is looked for among its functions.
    assert whose(graphs, "decode/Png", of_input=True).place == (MINE, 60)
    assert whose(graphs, "my_scope/Sin", of_input=True).place == (MINE, 61)
    # A scope of the model says nothing of what the input does.
    assert whose(graphs, "sequential/dense/X", of_input=True) == NOBODYS
