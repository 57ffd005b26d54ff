GP_LOCAL(OF(program))
CUresult cuDeviceGetCount(
        OUT ALWAYS(foo) int *a);
