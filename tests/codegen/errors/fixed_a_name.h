GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuDeviceGetCount(
        OUT FIXED(foo) int *a);
