GP_LOCAL()
CUresult cuInit(
        IN CUdevprop *Flags);

GP_LOCAL(FORWARD(cuInit, a))
CUresult cuFoo(
        OUT CONVERT(gpc_convert) unsigned int *a);
