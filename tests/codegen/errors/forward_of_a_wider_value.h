GP_LOCAL()
CUresult cuInit(
        size_t Flags);

GP_LOCAL(FORWARD(cuInit, a))
CUresult cuFoo(
        unsigned int a);
