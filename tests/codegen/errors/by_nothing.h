GP_LOCAL(OF(program))
CUresult cuDeviceGetCount(
        OUT BY() int *a);
