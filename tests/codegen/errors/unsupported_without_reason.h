GP_UNSUPPORTED("another", cuInit)
