GP_LOCAL()
CUresult cuDeviceGetTwo(
        OUT FROM(ordinal) int *first,
        OUT int *second,
        CUdevice dev);
