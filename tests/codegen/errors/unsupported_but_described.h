GP_SYMBOL(cuInit, cuInit, 2000)

GP_UNSUPPORTED("another", "no reason", cuInit)

GP_LOCAL()
CUresult cuInit(unsigned int Flags);
