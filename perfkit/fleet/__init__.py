"""The same question, asked of every machine of a Dask cluster, or of this one."""
