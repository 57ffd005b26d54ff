GP_LOCAL(OF(program))
CUresult cuDeviceGetCount(
        OUT BY(gpc_device_count, foo) int *a);
