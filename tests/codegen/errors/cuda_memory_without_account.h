GP_LOCAL()
CUresult cuMemAllocFoo(OUT CUdeviceptr *dptr, size_t size);
