GP_LOCAL(CLIENT_OBJECT(program))
CUresult cuDeviceGetCount(
        OUT COMPUTE(gpc_device_count, foo) int *a);
