import pytest

from setpoint.pareto.job import ORDERS, ready, route


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("points", [3, 4, 5, 10, 21])
def test_every_place_is_trained_once_from_a_place_before_it(order, points):
    legs = route(points, order)
    assert sorted(leg.place for leg in legs) == list(range(points))
    assert [leg.place for leg in legs if leg.start is None] == [0, points - 1]
    seen = set()
    for leg in legs:
        assert leg.start is None or leg.start in seen
        seen.add(leg.place)


@pytest.mark.parametrize("order", ORDERS[:3])
def test_walks_start_from_a_neighbour(order):
    assert all(leg.start is None or abs(leg.place - leg.start) == 1 for leg in route(12, order))


@pytest.mark.parametrize(("order", "rounds"), [("tighten", 9), ("inward", 5), ("bisect", 5)])
def test_how_many_rounds_a_front_takes_with_enough_processes(order, rounds):
    legs, done, count = route(10, order), set(), 0
    while waiting := ready(legs, done):
        done |= {leg.place for leg in waiting}
        count += 1
    assert count == rounds
    assert len(done) == 10


def test_levels_are_not_known_before_both_ends_are():
    legs = route(5, "tighten")
    assert [leg.place for leg in ready(legs, set())] == [0, 4]
    assert [leg.place for leg in ready(legs, {4})] == [0]
    assert [leg.place for leg in ready(legs, {0, 4})] == [3]
    assert [leg.place for leg in ready(legs, {0, 1, 3, 4})] == [2]
