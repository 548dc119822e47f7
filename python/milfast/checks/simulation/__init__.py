"""How often verdicts err: scores of made-up models, judged by the same code as those of real ones."""
