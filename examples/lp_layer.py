"""Learn what roads cost from the routes that drivers took: a network trained through a program.

    python examples/lp_layer.py

A map of 4 x 4 crossings. What a road costs depends on two features of it (its length, its traffic)
in a way that we do not know; we only see, for many days, the features of that day and the route
that was then the cheapest. A small network turns features into costs, `linear_program` turns costs
into the cheapest route (a flow of one unit: what enters a crossing leaves it), and the gradient of
the mistakes goes back through the program. A route does not move while costs change a little, so
the true gradient is zero; `cost_gradient` names what stands in for it.
"""

import torch
from torch import Tensor, nn

from setpoint.programs import linear_program

SIDE, DAYS, STEPS = 4, 40, 100
torch.manual_seed(0)


def roads() -> list[tuple[int, int]]:
    """East and south from every crossing: the routes from one corner to the other."""
    cells = [(r, c) for r in range(SIDE) for c in range(SIDE)]
    east = [(r * SIDE + c, r * SIDE + c + 1) for r, c in cells if c + 1 < SIDE]
    south = [(r * SIDE + c, (r + 1) * SIDE + c) for r, c in cells if r + 1 < SIDE]
    return east + south


def conservation(edges: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
    """What leaves a crossing minus what enters it: 1 at the start, -1 at the end, else 0.

    The last crossing's row is left out: it is minus the sum of the others.
    """
    E, h = torch.zeros(SIDE * SIDE, len(edges)), torch.zeros(SIDE * SIDE)
    for k, (start, end) in enumerate(edges):
        E[start, k], E[end, k] = 1, -1
    h[0] = 1
    return E[:-1], h[:-1]


EDGES = roads()
E, H = conservation(EDGES)


def route(costs: Tensor, **options: object) -> Tensor:
    """The cheapest route for each row of costs: 1 on its roads, 0 elsewhere."""
    return linear_program(costs, E=E, h=H, nonnegative=True, **options)[0]


def true_cost(features: Tensor) -> Tensor:
    """What the network does not know: beyond a jam traffic counts four times."""
    length, traffic = features.unbind(-1)
    return length + traffic + (traffic - 0.6).clamp(min=0) * 3


def score(network: nn.Module, features: Tensor, taken: Tensor) -> tuple[float, float]:
    """Share of days with the right route, and what the proposed routes cost too much."""
    with torch.no_grad():
        proposed = route(network(features)[..., 0])
        costs = true_cost(features)
        right = (proposed - taken).abs().amax(1) < 1e-6
        excess = (costs * proposed).sum() / (costs * taken).sum() - 1
    return right.float().mean().item(), excess.item()


def main() -> None:
    """Train, and print what was learned."""
    features = torch.rand(2 * DAYS, len(EDGES), 2)
    taken = route(true_cost(features))
    past, future = slice(0, DAYS), slice(DAYS, None)
    network = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Softplus())
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    print("step   loss   right routes   costs too much   (days not trained on)")
    for step in range(STEPS + 1):
        costs = network(features[past])[..., 0]
        proposed = route(costs, cost_gradient="smoothed")
        loss = (proposed - taken[past]).square().sum(1).mean()
        if step % 20 == 0:
            right, excess = score(network, features[future], taken[future])
            print(f"{step:4d} {loss.item():6.2f} {right:13.0%} {excess:15.1%}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    # All routes have equally many roads, so costs are known up to a constant and a unit.
    print("\nWhat it learned: what traffic adds to the cost of a road, from none to full")
    traffic = torch.tensor([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    probe = torch.stack([torch.full_like(traffic, 0.5), traffic], 1)
    with torch.no_grad():
        learned, true = network(probe)[:, 0], true_cost(probe)
    shares = [(x - x[0]) / (x[-1] - x[0]) for x in (learned, true)]
    for t, a, b in zip(traffic, *shares, strict=True):
        print(f"  traffic {t:4.0%}   learned {a:4.0%}   true {b:4.0%}")


if __name__ == "__main__":
    main()
