import pytest

from perfkit.errors import BadParameterError
from perfkit.fleet.run import SLACK_S, share_of
from tests.fleet.scripted import TASK, Fleet, doing, member, members, sent, whole


def asked(fleet, folder, during=lambda run, fleet: None):
    """Ask a fleet to the end; ``during`` is called at every look."""
    run = fleet.run(TASK, folder)
    for _ in run.events():
        during(run, fleet)
    return run.gathered()


def hows(gathered):
    return [outcome.how for outcome in gathered.outcomes]


def test_what_comes_home_is_saved_at_once(tmp_path):
    fleet = Fleet({"w1": whole(20), "w2": whole(62)}, members(2))
    first = []

    def look(_, fleet):
        if fleet.now == 21:
            first.extend(tmp_path.glob("*.json"))

    gathered = asked(fleet, tmp_path, look)
    assert len(first) == 1
    assert hows(gathered) == ["completed", "completed"]
    assert {o.path for o in gathered.outcomes} == set(tmp_path.glob("*.json"))
    assert [f.experiment for f in gathered.findings] == ["data-pipeline"] * 2
    assert fleet.closed == 1


def test_whoever_dies_breaks_or_falls_silent_is_told_and_the_rest_goes_on(tmp_path):
    scripts = {
        "w1": whole(),
        "w2": [*whole()[:9], (10, ("left", "It was killed."))],
        # Then it tells how it ended, and what it measured never comes home.
        "w3": [*whole()[:9], (10, {"how": "completed", "why": ""})],
        "w4": [(1, ("failed", "It has no perfkit."))],
    }
    gathered = asked(Fleet(scripts, members(5)), tmp_path)
    assert hows(gathered) == ["completed", "left", "cut off", "failed", "timed out"]
    said = [outcome.said for outcome in gathered.outcomes]
    assert "killed" in said[1]
    assert "Nothing was heard of it for 75 s, last at 15 % of its run" in said[2]
    assert said[3] == "It has no perfkit."
    assert said[4].startswith("It did not begin")
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_one_that_hangs_is_waited_for_until_budget_and_slack_are_over(tmp_path):
    told = [(at, doing("Round 3", 0.4)) for at in range(1, 500)]
    fleet = Fleet({"w1": told}, members(1))
    gathered = asked(fleet, tmp_path)
    assert hows(gathered) == ["timed out"]
    assert gathered.outcomes[0].said.endswith("the last that it told: Round 3.")
    assert gathered.seconds == TASK.budget + SLACK_S
    # It was told to be home before its turn is over.
    task = fleet.tasks["w1"]
    assert task.budget < task.seconds < TASK.budget + SLACK_S


def test_the_members_of_a_host_take_turns_and_share_the_budget(tmp_path):
    both = (member(1, "h"), member(2, "h"))
    fleet = Fleet({"w1": whole(30), "w2": whole(30)}, both)
    gathered = asked(fleet, tmp_path)
    assert hows(gathered) == ["completed", "completed"]
    assert fleet.began == {"w1": 0.0, "w2": 30.0}
    assert [task.budget for task in fleet.tasks.values()] == [30.0, 30.0]


def test_a_turn_that_is_lost_leaves_the_next_one_its_time(tmp_path):
    both = (member(1, "h"), member(2, "h"))
    fleet = Fleet({"w2": whole(31)}, both)
    gathered = asked(fleet, tmp_path)
    assert hows(gathered) == ["timed out", "completed"]
    # Whoever was given up is told so, for it may only have been slow.
    assert fleet.ended == ["w1", "w2"]
    assert gathered.seconds <= TASK.budget + SLACK_S


def test_stop_keeps_what_comes_home_and_waits_for_nobody_else(tmp_path):
    stopped = sent(how="stopped")
    scripts = {"w1": [*whole()[:20], (21, whole(data=stopped)[-1][1])]}
    both = (member(1), member(2), member(3, "h2"))
    fleet = Fleet(scripts, both)

    def look(run, fleet):
        if fleet.now == 18:
            run.stop()

    gathered = asked(fleet, tmp_path, look)
    assert hows(gathered) == ["stopped", "stopped", "stopped"]
    assert gathered.outcomes[0].path is not None
    assert gathered.outcomes[1].said == "Nothing came home after Stop."
    assert gathered.outcomes[2].said == "It was stopped before its turn."
    assert gathered.stopped
    assert fleet.ended == [None, "w1", "w2"]


def test_breaking_off_closes_the_fleet(tmp_path):
    fleet = Fleet({}, members(1))
    events = fleet.run(TASK, tmp_path).events()
    next(events)
    events.close()
    assert fleet.closed == 1


def marks(folder, *scripts):
    """How each member is marked, by the second."""
    found = {}

    def look(run, fleet):
        found[fleet.now] = [row.behind or row.silent for row in run.members]

    scripts = {f"w{n}": script for n, script in enumerate(scripts, 1)}
    asked(Fleet(scripts, members(len(scripts))), folder, look)
    return found


def test_a_straggler_and_one_of_whom_nothing_is_heard_are_marked(tmp_path):
    straggler = [(at, doing("Round 1", 0.02)) for at in range(1, 90)]
    marked = marks(tmp_path, whole(), whole(), whole(), straggler)
    assert marked[10] == [""] * 4
    told = "behind: 2.0 % done, half of the others 52 % or more"
    assert marked[32] == ["", "", "", told]
    marked = marks(tmp_path, whole()[:9])
    assert (marked[14], marked[17]) == ([""], ["nothing heard for 8 s"])


@pytest.mark.parametrize(
    ("budget", "turns", "share"),
    [(60, 1, 60), (60, 2, 30), (60, 8, 2.625), (47, 8, 1.0)],
)
def test_a_budget_is_shared_and_starting_is_left_room_for(budget, turns, share):
    assert share_of(budget, turns) == share


def test_a_budget_that_is_too_short_to_share_is_refused_with_the_one_that_will_do():
    with pytest.raises(BadParameterError, match=r"8 workers take turns; give 47 s or"):
        share_of(20, 8)
