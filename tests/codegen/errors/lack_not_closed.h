GP_INSTEAD("another", "no reason", cuInit;
