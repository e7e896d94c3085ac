"""Rank within queries for the precision of the first three: one threshold for each query.

Every query has an offset of its own (some topics score high whatever the document), which no
ranking needs and which a pointwise loss wastes its weights on.
"""

import numpy as np
import torch

from setpoint import Implicit, Ranker, precision_at_k

GOAL = precision_at_k(3).per("query")
QUERIES, DOCUMENTS = 120, 25


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, relevance and queries."""
    random = np.random.default_rng(seed)
    queries = np.repeat(np.arange(QUERIES), DOCUMENTS)
    x = random.normal(size=(len(queries), 5))
    topic = 3 * random.normal(size=QUERIES)[queries]
    quality = x[:, 0] - 0.7 * x[:, 1] + 0.8 * random.normal(size=len(queries))
    x[:, 2] += topic  # says much about the query, nothing about the document
    return x, (quality > 1.2).astype(int), queries


def loop(x: np.ndarray, y: np.ndarray, queries: np.ndarray, steps: int = 150) -> torch.nn.Module:
    """An ordinary training loop; the criterion is told which documents belong together."""
    torch.manual_seed(0)
    model = torch.nn.Linear(x.shape[1], 1)
    adam = torch.optim.Adam(model.parameters(), lr=0.03)
    criterion = Implicit(GOAL, steps=steps)
    features, labels = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
    for _ in range(steps):
        loss = criterion(model(features), labels, queries=queries)
        adam.zero_grad()
        loss.backward()
        adam.step()
    print(f"in the loop: {criterion.stats()}")
    return model


def main() -> None:
    x, y, queries = draw(0)
    new_x, new_y, new_queries = draw(1)
    model = loop(x, y, queries)
    with torch.no_grad():
        scores = model(torch.as_tensor(new_x, dtype=torch.float32))[:, 0]
    value = GOAL.evaluate(scores, new_y, queries=new_queries)
    print(f"{GOAL}: {value:.3f} on new queries")

    ranker = Ranker(GOAL, random_state=0, epochs=40).fit(x, y, qid=queries)
    print(f"the same by the estimator: {ranker.score(new_x, new_y, qid=new_queries):.3f}")


if __name__ == "__main__":
    main()
