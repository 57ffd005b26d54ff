GP_LOCAL()
CUresult cuDeviceGetTwo(
        OUT FIELD(ordinal) int *first,
        OUT int *second,
        CUdevice dev);
