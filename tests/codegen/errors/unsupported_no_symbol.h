GP_SYMBOL(cuInit, cuInit, 2000)

GP_UNSUPPORTED_SILENT("no reason", cuFoo)
