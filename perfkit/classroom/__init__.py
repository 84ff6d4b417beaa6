"""Many machines on one page: a folder of passports, and where each of them stands."""
