"""What can be made of models at hand: averages of methods, heads on trees, heads on embeddings.

    python -m benchmarks combinations --quick    # two minutes, to a scratch file
    python -m benchmarks combinations            # about half an hour
    python -m benchmarks combinations --table

Three questions, on tables by which defaults were chosen, each against what one would do without
the idea; points are test values, more is better.

1. *Average*: instead of the one of implicit, cross-entropy and resampled cross-entropy that is
   best on validation rows, the mean of their scores, each standardised on validation rows.
2. *Leaves*: the leaves of LightGBM's trees as columns, and a linear head on them that starts from
   LightGBM's own leaf values and is trained by `Implicit`; against LightGBM.
3. *Embeddings*: features of a network that was trained for other classes (Fashion-MNIST, all but
   shirts), and 30 to 10,000 labels of the new class: `retarget` against logistic regression.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from benchmarks.common import images, results, tabular
from benchmarks.common.scratch import scratch
from benchmarks.points.goals import GOALS, points
from setpoint.solvers import METHODS
from setpoint.train import LEARNING_RATES, Cached, Validation, fit_best, network, retarget, score
from setpoint.train.boosted_trees import STALE_TREES

USED = ("fnr1", "pr95", "f1")
MEMBERS = ("implicit", "cross_entropy", "resampled")
TREES, SHIRT, UNITS = 100, 6, 64
LABELS = (30, 100, 1000, 10_000)
STEPS, BATCH = 1000, 512


def main() -> None:
    options = results.parser(__doc__, "table", "out", quick="two small tables", seeds=3)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows = results.RESULTS / "combinations.jsonl"
    out = chosen.out or (scratch("combinations") if chosen.quick else rows)
    if not chosen.table:
        done = {(row["idea"], row["data"], row["seed"]) for row in results.read(out)}
        for idea, data, seed in cells(chosen.quick, chosen.seeds):
            if (idea, data, seed) not in done:
                about = {"idea": idea, "data": data, "seed": seed}
                found = IDEAS[idea](data, seed)
                results.append(out, *(about | row for row in found), packages=["lightgbm"])
                print(idea, data, seed, flush=True)
    print(table(results.read(out)))


def cells(quick: bool, seeds: int) -> Iterator[tuple[str, str, int]]:
    """Split by split, the small tables first."""
    names = ("heart", "crime") if quick else tabular.NAMES[::-1]
    for seed in range(1 if quick else seeds):
        yield from ((idea, name, seed) for idea in ("average", "leaves") for name in names)
        if not quick:
            yield "embeddings", "fashion_mnist", seed


def tensors(part: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.as_tensor(part.x), torch.as_tensor(part.y)


def average(data: str, seed: int) -> list[results.Row]:
    """The mean of three methods' scores against the best of them on validation rows."""
    parts, found = tabular.parts(data, seed), []
    for kind in ("linear", "mlp"):
        for goal in USED:
            judge = Validation(GOALS[goal], *tensors(parts.validation))
            tried, seen = {}, []
            for method in MEMBERS:
                torch.manual_seed(seed)
                best = fit_best(
                    network(kind, parts.train.x.shape[1]),
                    {method: METHODS[method]},
                    *tensors(parts.train),
                    validation=judge,
                    steps=STEPS,
                    batch_size=BATCH,
                    learning_rate=LEARNING_RATES[kind],
                    seed=seed,
                )
                known, new = (score(best.model, x).numpy() for x in (judge.x, tests(parts)))
                tried[method] = best.fitted[method].best
                seen.append((new.ravel() - known.mean()) / (known.std() or 1.0))
            better = max if GOALS[goal].maximize else min
            picked = MEMBERS.index(better(tried, key=lambda name: tried[name]))
            ways = {
                "picked": seen[picked],
                "idea_value": sum(seen),
                **dict(zip(MEMBERS, seen, strict=True)),
            }
            found.append({"model": kind, "goal": goal} | values(goal, ways, parts.test.y))
    return found


def tests(parts: Any) -> torch.Tensor:
    return torch.as_tensor(parts.test.x)


def values(goal: str, ways: dict[str, Any], labels: Any) -> results.Row:
    """The test value of each way, in points."""
    return {
        name: round(points(goal, GOALS[goal].evaluate(scores, labels)), 3)
        for name, scores in ways.items()
    }


def leaves(data: str, seed: int) -> list[results.Row]:
    """A linear head on the leaves of trees, from LightGBM's own values."""
    parts = tabular.parts(data, seed)
    first = lightgbm.Dataset(parts.train.x, parts.train.y)
    second = lightgbm.Dataset(parts.validation.x, parts.validation.y, reference=first)
    settings = {"objective": "binary", "learning_rate": 0.1, "seed": seed, "verbosity": -1}
    stop = lightgbm.early_stopping(STALE_TREES, verbose=False)
    grown = lightgbm.train(
        settings | {"num_threads": 1}, first, TREES, valid_sets=[second], callbacks=[stop]
    )
    trees, width = grown.best_iteration, 31  # LightGBM's default
    start = np.zeros((trees * width, 1))
    for tree, told in enumerate(grown.dump_model(num_iteration=trees)["tree_info"]):
        for leaf in range(told["num_leaves"]):
            start[tree * width + leaf] = grown.get_leaf_output(tree, leaf)
    columns = [
        torch.as_tensor(
            grown.predict(part.x, pred_leaf=True, num_iteration=trees).reshape(len(part.y), trees)
            + width * np.arange(trees)
        )
        for part in parts
    ]
    found = []
    for goal in USED:
        head = nn.EmbeddingBag(trees * width, 1, mode="sum")
        head.weight.data.copy_(torch.as_tensor(start))
        judge = Validation(GOALS[goal], columns[1], torch.as_tensor(parts.validation.y))
        best = fit_best(
            head,
            {"implicit": METHODS["implicit"]},
            columns[0],
            torch.as_tensor(parts.train.y),
            validation=judge,
            steps=STEPS,
            batch_size=BATCH,
            learning_rate=0.01,
            seed=seed,
        )
        ways = {
            "picked": grown.predict(parts.test.x, raw_score=True, num_iteration=trees),
            "idea_value": score(best.model, columns[2]).numpy().ravel(),
        }
        found.append({"model": "trees", "goal": goal} | values(goal, ways, parts.test.y))
    return found


def embeddings(data: str, seed: int) -> list[results.Row]:
    """A head for a new class on the features of a network that never saw it."""
    stored = images.load(data)
    x, y = stored.train.flatten(1), stored.labels
    torch.manual_seed(seed)
    body = nn.Sequential(nn.Linear(x.shape[1], UNITS), nn.ReLU())
    _train_body(body, x[y != SHIRT][:20_000], y[y != SHIRT][:20_000], seed)
    model = nn.Sequential(body, nn.Linear(UNITS, 1))
    with torch.no_grad():
        features, new = body(x), body(stored.test.flatten(1))
    labels, truth = (y == SHIRT).long(), (stored.test_labels == SHIRT).numpy().astype(int)
    found = []
    for count in LABELS:
        rows = torch.as_tensor(np.random.default_rng(seed).permutation(len(y))[:count])
        known, own = features[rows], labels[rows]
        plain = LogisticRegression(max_iter=2000).fit(known.numpy(), own.numpy())
        head = model[1]
        head.weight.data.copy_(torch.as_tensor(plain.coef_))
        head.bias.data.copy_(torch.as_tensor(plain.intercept_))
        retarget(model, head, GOALS["fnr1"], Cached(known, own), seed=seed)
        with torch.no_grad():
            ways = {"picked": plain.decision_function(new), "idea_value": head(new)[:, 0].numpy()}
        found.append({"model": f"{count} labels", "goal": "fnr1"} | values("fnr1", ways, truth))
    return found


def _train_body(body: nn.Module, x: torch.Tensor, y: torch.Tensor, seed: int) -> None:
    """Cross-entropy over the other classes."""
    whole = nn.Sequential(body, nn.Linear(UNITS, 10))
    optimizer = torch.optim.Adam(whole.parameters(), 1e-3)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        rows = torch.randint(len(y), (BATCH,), generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(whole(x[rows]), y[rows]).backward()
        optimizer.step()


IDEAS = {"average": average, "leaves": leaves, "embeddings": embeddings}


def table(rows: list[results.Row]) -> str:
    """Points of the idea minus what one would do without it, with the standard error."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        found[row["idea"], row["model"]].append(row["idea_value"] - row["picked"])
    lines = ["| idea | model | points (standard error, cells) |", "| --- | --- | --- |"]
    for (idea, model), gains in found.items():
        error = np.std(gains, ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
        shown = f"{np.mean(gains):+.2f} ({error:.2f}, {len(gains)})"
        lines.append(f"| {idea} | {model} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
