"""More than one machine: passports, what sets two apart, a whole class."""
