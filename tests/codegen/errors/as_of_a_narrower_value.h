GP_LOCAL()
CUresult cuInit(
        int Flags);

GP_LOCAL(AS(cuInit, a))
CUresult cuFoo(
        size_t a);
