GP_LOCAL(OF(program))
CUresult cuDeviceGetCount(
        OUT ALWAYS(7) WITHIN(1, 2) int *a);
