"""Attacks on a server of our own: bounded, on loopback only, each a program and a short test.

``python -m tests.attack.NAME`` starts a victim, attacks it and prints what that cost; ``--seconds`` says for how long,
and ``--tree DIR`` takes the victim from another checkout, for the figures before and after. `runner` has what they
share; ``test_NAME.py`` runs each for about a second and judges the figures.
"""
