GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(FORWARD(cuInit, b))
CUresult cuFoo(
        int a);
