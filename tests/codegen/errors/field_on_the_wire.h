GP_CALL(0x7001, WAIT)
CUresult cuDeviceGetDefaultNumber(
        OUT FIELD(number) int *number,
        CUdevice dev);
