GP_LOCAL()
CUresult cuDeviceFind(
        OUT FROM(ordinal) int *found,
        CUdevice dev);
