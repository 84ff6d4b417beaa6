"""What does TensorFlow say and do when it starts here? Watched from outside."""
