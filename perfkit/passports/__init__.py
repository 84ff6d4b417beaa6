"""Passports: one machine on one page, to be held against another."""
