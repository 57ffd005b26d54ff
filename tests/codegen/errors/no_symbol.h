GP_SYMBOL(cuInit, cuInit, 2000)

GP_LOCAL()
CUresult cuFoo(unsigned int Flags);
