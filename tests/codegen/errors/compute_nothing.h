GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuDeviceGetCount(
        OUT COMPUTE() int *a);
