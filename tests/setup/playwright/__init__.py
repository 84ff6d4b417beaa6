"""A Playwright that notes what it is asked, and downloads where a file says so."""
