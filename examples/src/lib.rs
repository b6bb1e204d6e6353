//! One runnable program per feature, smallest first: see `examples/`.
