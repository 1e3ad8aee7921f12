"""Words that a version may spell in another way: every spelling, the one to prefer first.

Calls and comparisons use the left one, which is that of the first version compared. Which one a build accepts is seen
from its help; a word that is not listed has one spelling. Add a line when a flag, a value or a key gets another name.
"""

NAMES = {
    "commands": {},
    "flags": {
        "--scale": ["--lambda", "--scale"],
        "--scaling": ["--preprocess", "--preprocessing", "--scaling"],
        "--form": ["--normalization", "--form"],
        "--models": ["--n-estimators", "--models"],
        "--rounds": ["--mining-rounds", "--rounds"],
        "--last-iter": ["--last-round-iter", "--last-max-iter", "--last-iter"],
        "--round-iter": ["--rung-iter", "--round-iter"],
        "--batch": ["--batch-size", "--batch"],
        "--without": ["--ablate", "--exclude", "--without"],
        "--search": ["--lmo", "--search"],
        "--steps": ["--step-rule", "--steps"],
    },
    "values": {
        "neighbours": ["neighbors", "neighbours"],
        "rounds": ["mining-rounds", "mining", "rounds"],
        "means": ["ensembles", "means"],
        "votes": ["prediction-rules", "votes"],
        "losses": ["losses"],
    },
    # Keys of JSON answers; `a.b` is the key b in the object a.
    "keys": {
        "scale": ["lambda", "scale"],
        "form": ["normalization", "form"],
        "models": ["n_estimators", "models"],
        "rounds": ["mining_rounds", "rounds"],
        "grid": ["lambdas", "lambda_results", "grid"],
        "chosen_iteration": ["best_iteration", "selected_iteration", "chosen_iteration"],
        "last_iter": ["last_round_iter", "last_max_iter", "last_iter"],
        "n_judged": ["n_validation", "n_validated", "n_judged"],
        "n_models": ["n_models"],
        "without": ["ablations", "without"],
    },
    # Classes, functions, parameters, methods and attributes of the Python package.
    "python": {
        "scale": ["lambda_", "lam", "domain_size", "scale"],
        "scaling": ["preprocess", "preprocessing", "scaling"],
        "form": ["normalization", "form"],
        "models": ["n_estimators", "models"],
        "rounds": ["mining_rounds", "n_mining_rounds", "rounds"],
        "last_iter": ["last_round_iter", "last_max_iter", "last_iter"],
        "batch": ["batch_size", "batch"],
        "search": ["lmo", "search"],
        "steps": ["step_rule", "steps"],
        "strength": ["strength", "alpha", "penalty"],
        "penalty": ["norm", "penalty"],
    },
}
