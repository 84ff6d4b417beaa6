"""What is one machine on one page?"""
