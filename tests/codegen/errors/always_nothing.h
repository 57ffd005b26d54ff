GP_LOCAL(OF(program))
CUresult cuDeviceGetCount(
        OUT ALWAYS() int *a);
