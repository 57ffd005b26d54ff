GP_LOCAL()
CUresult cuDeviceGetName(
        OUT_BYTES(BY_HOOK) FIELD(name) char *name,
        CUdevice dev);
