"""Two machines: why does the same training run differently on them?"""
