GP_LOCAL()
CUresult cuInit(
        OUT unsigned int *Flags);

GP_LOCAL(FORWARD(cuInit, a))
CUresult cuFoo(
        OUT int *a);
