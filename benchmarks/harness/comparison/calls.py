"""The calls of the program that are compared, in the spelling of the first version. A call ends with the whole matrix
(`explain --top 0`) and, where there are classes, with the error on test rows."""

EXPLAIN = "explain m.hdsl --top 0"


def trained(data, flags, then=(), evaluate=""):
    """Train on rows of a set, explain, and test. `{NAME}` stands for an input."""
    return [
        f"train {{{data}-train}} {flags} -o m.hdsl",
        EXPLAIN,
        f"evaluate m.hdsl --train {{{data}-train}} {{{data}-test}} {evaluate}",
        *then,
    ]


def from_triplets(rows, pairs, flags):
    """Train on triplets that are given, explain, and score pairs of rows."""
    return [f"train {{{rows}}} {flags} -o m.hdsl", EXPLAIN, f"score m.hdsl {{{rows}}} --pairs {{{pairs}}}"]


def tuned(data, flags, evaluate=""):
    """Search with more time than it needs, so that the same is found on every machine."""
    return [
        f"tune {{{data}-train}} --time 2h {flags} -o m.hdsl",
        EXPLAIN,
        f"evaluate m.hdsl --train {{{data}-train}} {evaluate} {{planted-test}}",
    ]


VALID = "--valid {planted-valid}"
RANDOM = "--triplets random:20 --scale 100"
CALLS = {
    # Losses, searches and steps; all triplets in each gradient.
    "default": trained("planted", "--scale 10 --max-iter 200"),
    "loss-squared": trained("dexter", f"{RANDOM} --loss squared-hinge --max-iter 300"),
    "loss-logistic": trained("dexter", f"{RANDOM} --loss logistic --max-iter 150"),
    "loss-exponential": trained("dexter", f"{RANDOM} --loss exponential --max-iter 150"),
    "exact": trained("dexter", f"{RANDOM} --search exact --max-iter 150"),
    "exact-logistic": trained("planted", "--scale 20 --search exact --loss logistic --max-iter 60"),
    "steps-pairwise": trained("dexter", f"{RANDOM} --steps pairwise --max-iter 300"),
    "steps-forward": trained("dexter", f"{RANDOM} --steps forward --max-iter 300"),
    "pairwise-exact-squared": trained(
        "planted", "--scale 20 --steps pairwise --search exact --loss squared-hinge --max-iter 100"
    ),
    "pairwise-exponential": trained("planted", "--scale 5 --steps pairwise --loss exponential --max-iter 100"),
    "forward-logistic": trained("planted", "--scale 20 --steps forward --loss logistic --max-iter 100"),
    # Past the iteration at which sums that are updated are computed anew.
    "long": trained("planted", "--scale 30 --max-iter 2300"),
    # More triplets than fit one shard, so that threads share them out.
    "many-triplets": trained("planted", "--triplets random:300 --scale 30 --max-iter 80"),
    "many-triplets-2-threads": trained("planted", "--triplets random:300 --scale 30 --max-iter 80 --threads 2"),
    "many-triplets-logistic": trained(
        "planted", "--triplets random:150 --scale 30 --max-iter 25 --loss logistic --threads 2"
    ),
    # Mini-batches, small and larger.
    "batch-small": trained("dexter", f"{RANDOM} --batch 50 --max-iter 300"),
    "batch-large": trained("dexter", f"{RANDOM} --batch 3000 --max-iter 300"),
    "batch-small-logistic": trained("dexter", f"{RANDOM} --batch 50 --loss logistic --max-iter 200"),
    "batch-large-logistic": trained("dexter", f"{RANDOM} --batch 3000 --loss logistic --max-iter 200"),
    "batch-squared-exact": trained(
        "planted", "--scale 20 --batch 500 --loss squared-hinge --search exact --max-iter 60"
    ),
    "batch-exponential-forward": trained(
        "planted", "--scale 5 --batch 300 --loss exponential --steps forward --max-iter 100"
    ),
    "batch-pairwise-2-threads": trained(
        "planted", "--triplets random:150 --scale 30 --batch 20000 --steps pairwise --max-iter 60 --threads 2"
    ),
    # Mining rounds.
    "rounds": trained("planted", "--scale 10 --rounds 2 --max-iter 60"),
    "rounds-random": trained("top4", "--triplets random:10 --scale 100 --rounds 3 --max-iter 60 --last-iter 25"),
    "rounds-batch-unit": trained(
        "dexter", "--triplets random:20 --scale 10000 --scaling unit --rounds 2 --batch 400 --max-iter 80"
    ),
    # Where triplets come from.
    "knn-5-2": trained("planted", "--triplets knn:5:2 --scale 10 --max-iter 100 --threads 2"),
    "random-seed-7": trained("planted", "--triplets random:8 --scale 10 --max-iter 100 --seed 7"),
    "given": from_triplets("planted-train", "planted-pairs", "--triplets {given} --scale 10 --max-iter 100"),
    "weighted": from_triplets("planted-train", "planted-pairs", "--triplets {weighted} --scale 10 --max-iter 100"),
    "weighted-logistic": from_triplets(
        "planted-train", "planted-pairs", "--triplets {weighted} --scale 10 --loss logistic --max-iter 60 --threads 2"
    ),
    "weighted-batch": from_triplets(
        "planted-train", "planted-pairs", "--triplets {weighted} --scale 10 --batch 200 --max-iter 100"
    ),
    "weighted-exact": from_triplets(
        "planted-train", "planted-pairs", "--triplets {weighted} --scale 10 --search exact --tol 0.05 --max-iter 300"
    ),
    "clicks": from_triplets("planted-train", "planted-pairs", "--triplets clicks:{clicks} --scale 10 --max-iter 100"),
    "judgments": from_triplets(
        "cranfield-rows", "cranfield-pairs", "--triplets judgments:{judgments-high} --scale 1000 --max-iter 200"
    ),
    "judgments-low-unit": from_triplets(
        "cranfield-rows",
        "cranfield-pairs",
        "--triplets judgments-low:{judgments-low} --scale 10000 --scaling unit --max-iter 200",
    ),
    # Preprocessing of features.
    "preprocess-none": trained("dexter", "--triplets random:20 --scale 0.001 --scaling none --max-iter 150"),
    "preprocess-unit": trained("dexter", "--scale 10000 --scaling unit --max-iter 150"),
    "preprocess-max-unit": trained("dexter", "--scale 10000 --scaling max+unit --max-iter 150"),
    "identity": [
        f"evaluate identity --train {{dexter-train}} {{dexter-test}} --scaling {kind} {flags}"
        for kind in ["none", "max", "unit", "max+unit"]
        for flags in ["", "-k 9 --vote weighted --form cosine", "--vote class-mean"]
    ],
    # Validation.
    "valid-patience": trained("planted", f"{VALID} --scale 10 --patience 60 --max-iter 400"),
    "valid-scales": trained("planted", f"{VALID} --scale 1,10,100 --patience 60 --max-iter 300 --threads 2"),
    "holdout": trained("dexter", f"{RANDOM} --holdout 0.3 --patience 100 --max-iter 400 --eval-every 5 --seed 3"),
    "holdout-scales": trained(
        "farm_ads", "--scale 10,100,1000 --holdout 0.25 --patience 50 --max-iter 200 --threads 2"
    ),
    "valid-rounds-scales": trained("top4", "--valid {top4-valid} --scale 30,300 --rounds 1 --max-iter 80 --patience 40"),
    "valid-batch": trained("planted", f"{VALID} --scale 10 --batch 200 --loss logistic --patience 50 --max-iter 200"),
    "vote-weighted-cosine": trained(
        "planted", f"{VALID} --scale 10 -k 15 --vote weighted --form cosine --patience 50 --max-iter 200"
    ),
    "vote-class-mean": trained("planted", f"{VALID} --scale 10 --vote class-mean --patience 50 --max-iter 200"),
    "vote-class-mean-cosine": trained(
        "top4", "--valid {top4-valid} --scale 100 --vote class-mean --form cosine --patience 50 --max-iter 150"
    ),
    # Ensembles.
    "models": trained("dexter", f"{RANDOM} --models 3 --max-iter 100"),
    "models-rounds-2-threads": trained(
        "planted", "--triplets random:10 --scale 20 --models 3 --rounds 1 --max-iter 60 --last-iter 20 --threads 2"
    ),
    "models-valid": trained("planted", f"{VALID} --scale 10 --models 3 --triplets random:10 --max-iter 60"),
    # When to stop.
    "max-features": trained("dexter", f"{RANDOM} --max-features 40 --max-iter 300"),
    "tol-exact": trained("planted", "--scale 2 --search exact --tol 0.01 --max-iter 2000"),
    "tol-alternating": trained("planted", "--scale 2 --tol 0.02 --max-iter 2000"),
    "tol-logistic": trained("small", "--scale 5 --loss logistic --tol 0.02 --max-iter 500", evaluate="-k 5"),
    "certify": trained("dexter", f"{RANDOM} --certify --max-iter 200 --threads 2"),
    "certify-batch": trained("planted", "--scale 10 --batch 300 --certify --max-iter 100"),
    # Other data: many features, many classes, rows of other files and formats.
    "dorothea": trained(
        "dorothea",
        "--scale 100 --max-iter 100",
        ["evaluate m.hdsl --train {dorothea-train} {dorothea-bare} --labels {dorothea-bare-labels}"],
    ),
    "farm_ads": trained("farm_ads", "--scale 100 --max-iter 200 --threads 2"),
    "top4": trained("top4", "--scale 100 --max-iter 200"),
    "reuters": trained("reuters", "--scale 100 --max-iter 150 --threads 2"),
    "rcv1": trained("rcv1", "--scale 100 --max-iter 150"),
    "add": [
        "train {small-train} --add {small-more} --scale 10 --max-iter 100 -o m.hdsl",
        EXPLAIN,
        "evaluate m.hdsl --train {small-train} --add {small-more} {planted-test}",
    ],
    "npz": [
        "convert {planted-train} -o rows.npz",
        "train rows.npz --scale 10 --max-iter 100 -o m.hdsl",
        EXPLAIN,
        "evaluate m.hdsl --train rows.npz {planted-test}",
    ],
    "text": [
        "vectorize {text-train} --weighting tfidf --min-df 2 --save-vocab vocab.txt -o train.svm",
        "vectorize {text-test} --vocab vocab.txt -o test.svm",
        "train train.svm --scale 1000 --triplets random:10 --max-iter 150 --names vocab.txt -o m.hdsl",
        EXPLAIN,
        "evaluate m.hdsl --train train.svm test.svm",
    ],
    # What else a model is asked for.
    "earlier-iterates": trained(
        "dexter",
        f"{RANDOM} --max-iter 200",
        [
            "evaluate m.hdsl --train {dexter-train} {dexter-test} --max-features 30",
            "evaluate m.hdsl --train {dexter-train} {dexter-test} --max-atoms 50",
            "evaluate m.hdsl --train {dexter-train} {dexter-test} --iteration 77 -k 7 --vote weighted",
            "explain m.hdsl --top 0 --iteration 99",
        ],
    ),
    "neighbors": trained(
        "planted",
        "--scale 10 --max-iter 100",
        [
            "neighbors m.hdsl --train {planted-train} {planted-test} -k 4 --rows 0-99",
            "predict m.hdsl --train {planted-train} {planted-test} --vote class-mean",
            "explain m.hdsl --pair {planted-test}:3 {planted-train}:17 --top 0",
        ],
    ),
    "neighbors-cosine": trained(
        "dexter",
        f"{RANDOM} --max-iter 60 --form cosine",
        [
            "neighbors m.hdsl --train {dexter-train} {dexter-test} -k 3 --form cosine --rows 0-99 --threads 2",
            "predict m.hdsl --train {dexter-train} {dexter-test} --vote weighted --form cosine",
        ],
    ),
    "triplets": [
        "triplets {dexter-train} --triplets knn:3:5 -o triplets.txt",
        "train {dexter-train} --triplets triplets.txt --scale 100 --max-iter 80 -o m.hdsl",
        EXPLAIN,
        "evaluate m.hdsl --train {dexter-train} {dexter-test}",
    ],
    "demo": ["demo --dir demo --seed 4", "explain demo/model.hdsl --top 0"],
    # Searches.
    "tune": tuned("small", f"{VALID} --round-iter 40", "--add {planted-valid}"),
    "tune-no-refit-seed": tuned("small", f"{VALID} --round-iter 30 --no-refit --seed 5 --threads 2"),
    "tune-cv": tuned("small", "--cv 3 --round-iter 20 --threads 2"),
    "tune-cv-max-features": tuned("small", "--cv 2 --round-iter 20 --max-features 12 --seed 3"),
    "tune-holdout-max-atoms": tuned("small", "--holdout 0.3 --round-iter 20 --max-atoms 8"),
    "tune-paper": tuned("planted", f"{VALID} --preset paper --round-iter 60", "--add {planted-valid}"),
    "tune-parts": tuned(
        "small", f"{VALID} --without rounds,votes,cosine,neighbours,losses --round-iter 30", "--add {planted-valid}"
    ),
}
