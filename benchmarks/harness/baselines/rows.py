"""Rows scaled as we scale them: by the training maxima, then clipped, or to unit length."""

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MaxAbsScaler, normalize


def read(train, *others):
    """(X, y) of each file, with the features of the first."""
    x, y = load_svmlight_file(train)
    parts = [(x, y)]
    for other in others:
        more, labels = load_svmlight_file(other)
        # A later file may have features the first one lacks, or lack some of its last.
        kept = min(more.shape[1], x.shape[1])
        more = more.tocsr()[:, :kept]
        more.resize(more.shape[0], x.shape[1])
        parts.append((more, labels))
    return parts


def scaled(train, *others):
    """(X, y) of each file, the preprocessing is fitted to the first."""
    parts = read(train, *others)
    scaler = MaxAbsScaler().fit(parts[0][0])
    parts = [(scaler.transform(x).tocsr(), y) for x, y in parts]
    for x, _ in parts:
        np.clip(x.data, -1, 1, out=x.data)
    return parts


def unit(train, *others):
    """(X, y) of each file, rows of length 1."""
    return [(normalize(x), y) for x, y in read(train, *others)]


def vote(near, labels):
    """The most frequent class among the neighbors of each row, nearest first; ties go to the nearest."""
    classes = labels[near]
    winners = classes[:, 0].copy()
    most = np.ones(len(classes), dtype=int)
    for at in range(near.shape[1]):
        votes = (classes == classes[:, at : at + 1]).sum(axis=1)
        better = votes > most
        winners[better], most[better] = classes[better, at], votes[better]
    return winners
