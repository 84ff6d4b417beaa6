"""Where the seconds of a script go, line by line: an account, which knows no cause.

Open ``perfkit/findings/account.py`` first: what an account holds. Here ``collect`` runs
the script and looks at it, ``charge`` puts every second on a line, and ``causes`` says
what people do about what was seen.
"""
