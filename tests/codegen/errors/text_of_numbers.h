GP_LOCAL(OF(active))
CUresult cuFoo(
        OUT_BYTES(8) FROM(flags) int *x);
