GP_LOCAL()
CUresult cuInit(
        int Flags);

GP_LOCAL(FORWARD(cuInit, a))
CUresult cuFoo(
        size_t a);
