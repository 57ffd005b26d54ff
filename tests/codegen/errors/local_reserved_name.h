GP_LOCAL()
CUresult cuDeviceFind(
        OUT FIELD(ordinal) int *found,
        CUdevice dev);
