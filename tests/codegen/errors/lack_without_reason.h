GP_INSTEAD("another", cuInit)
