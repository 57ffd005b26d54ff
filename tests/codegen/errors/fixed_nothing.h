GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuDeviceGetCount(
        OUT FIXED() int *a);
