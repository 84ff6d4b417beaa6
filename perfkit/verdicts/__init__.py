"""What do the timings of each experiment mean? Numbers, facts and the sentence."""
