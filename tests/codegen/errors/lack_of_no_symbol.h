GP_SYMBOL(cuInit, cuInit, 2000)

GP_PROBED("no reason", cuFoo)
