"""A training of the user's own: where its seconds go, what slows it, which is faster.

``account`` charges each second to a line; ``diagnose`` swaps one thing at a time;
``race`` holds two trainings against each other; ``profile`` traces a few steps. Open
``diagnose/maker.py`` first: it turns a function, a script or a notebook into what all
four run.
"""
