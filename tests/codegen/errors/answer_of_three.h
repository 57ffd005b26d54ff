GP_LOCAL(ANSWERS(CUDA_SUCCESS))
CUresult cuDeviceThree(
        CUdevice first,
        CUdevice second,
        CUdevice third);
