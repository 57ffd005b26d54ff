GP_UNSUPPORTED("another", "no reason", cuInit;
