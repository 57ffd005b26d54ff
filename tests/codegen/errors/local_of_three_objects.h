GP_LOCAL(RETURNS(CUDA_SUCCESS))
CUresult cuDeviceThree(
        CUdevice first,
        CUdevice second,
        CUdevice third);
