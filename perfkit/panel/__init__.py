"""The panel of an experiment: controls, Run, Stop, a live chart, the verdict."""
