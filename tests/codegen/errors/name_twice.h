GP_LOCAL()
CUresult cuInit(unsigned int Flags);

GP_LOCAL(ALIAS(cuInit))
CUresult cuFoo(unsigned int Flags);
