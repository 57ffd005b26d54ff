GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuFoo(
        OUT_BYTES(8) FIELD(flags) int *x);
