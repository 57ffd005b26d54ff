GP_STRUCT(CUdeviceptr,
        int a)
