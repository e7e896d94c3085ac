"""Ranking: precision, recall and NDCG of the first documents on MQ2007-agg, beside other losses.

``python -m benchmarks.ranking`` trains and appends rows, ``python -m benchmarks.ranking.page``
prints the tables of docs/ranking.md, ``python -m benchmarks.ranking.cost`` takes time and memory.
"""
