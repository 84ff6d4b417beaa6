"""The stages of a ``tf.data`` pipeline: read them, change one, build the rest anew."""
