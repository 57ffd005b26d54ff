GP_LOCAL()
CUresult cuDeviceGetName(
        OUT_BYTES(BY_HOOK) FROM(name) char *name,
        CUdevice dev);
