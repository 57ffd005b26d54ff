GP_CALL(0x7001, WAIT)
CUresult cuDeviceGetDefaultNumber(
        OUT FROM(number) int *number,
        CUdevice dev);
