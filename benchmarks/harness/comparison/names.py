"""Words that a version may spell in another way: every spelling, the one to prefer first.

Calls and comparisons use the left one, which is that of the first version compared. Which one a build accepts is seen
from its help; a word that is not listed has one spelling. Add a line when a flag, a value or a key gets another name.
"""

#: Words that are flags (`--last-iter`), keys of JSON answers and parameters in Python (`last_iter`) alike.
EVERYWHERE = {
    "form": ["normalization", "form"],
    "models": ["n_estimators", "models"],
    "rounds": ["mining_rounds", "n_mining_rounds", "rounds"],
    "last_iter": ["last_round_iter", "last_max_iter", "last_iter"],
    "batch": ["batch_size", "batch"],
    "search": ["lmo", "search"],
    "steps": ["step_rule", "steps"],
    "scaling": ["preprocess", "preprocessing", "scaling"],
}


def flag(word: str) -> str:
    return "--" + word.replace("_", "-")


NAMES = {
    "commands": {},
    "flags": {
        "--scale": ["--lambda", "--scale"],
        "--round-iter": ["--rung-iter", "--round-iter"],
        "--without": ["--ablate", "--exclude", "--without"],
        **{flag(word): [flag(one) for one in spellings] for word, spellings in EVERYWHERE.items()},
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
        **EVERYWHERE,
        "scale": ["lambda", "scale"],
        "grid": ["lambdas", "lambda_results", "grid"],
        "chosen_iteration": ["best_iteration", "selected_iteration", "chosen_iteration"],
        "n_judged": ["n_validation", "n_validated", "n_judged"],
        "n_models": ["n_models"],
        "without": ["ablations", "without"],
    },
    # Classes, functions, parameters, methods and attributes of the Python package.
    "python": {
        **EVERYWHERE,
        "scale": ["lambda_", "lam", "domain_size", "scale"],
        "strength": ["strength", "alpha", "penalty"],
        "penalty": ["norm", "penalty"],
    },
}
