GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(AS(cuInit, b))
CUresult cuFoo(
        int a);
