import pytest

from setpoint.pareto.job import ORDERS, plan_points, ready


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("points", [3, 4, 5, 10, 21])
def test_every_place_is_trained_once_from_a_place_before_it(order, points):
    planned = plan_points(points, order)
    assert sorted(point.place for point in planned) == list(range(points))
    assert [point.place for point in planned if point.start is None] == [0, points - 1]
    seen = set()
    for point in planned:
        assert point.start is None or point.start in seen
        seen.add(point.place)


@pytest.mark.parametrize("order", ORDERS[:3])
def test_points_start_from_a_neighbour(order):
    assert all(
        point.start is None or abs(point.place - point.start) == 1
        for point in plan_points(12, order)
    )


@pytest.mark.parametrize(("order", "rounds"), [("tighten", 9), ("inward", 5), ("bisect", 5)])
def test_how_many_rounds_a_front_takes_with_enough_processes(order, rounds):
    planned, done, count = plan_points(10, order), set(), 0
    while waiting := ready(planned, done):
        done |= {point.place for point in waiting}
        count += 1
    assert count == rounds
    assert len(done) == 10


def test_levels_are_not_known_before_both_ends_are():
    planned = plan_points(5, "tighten")
    assert [point.place for point in ready(planned, set())] == [0, 4]
    assert [point.place for point in ready(planned, {4})] == [0]
    assert [point.place for point in ready(planned, {0, 4})] == [3]
    assert [point.place for point in ready(planned, {0, 1, 3, 4})] == [2]
