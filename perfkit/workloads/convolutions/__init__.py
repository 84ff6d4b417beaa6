"""One convolution, computed in many ways that have to give the same answer."""
