GP_ENUM(CUdeviceptr)
