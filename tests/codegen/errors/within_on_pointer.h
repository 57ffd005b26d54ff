GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuDeviceGetCount(
        OUT FIXED(7) WITHIN(1, 2) int *a);
