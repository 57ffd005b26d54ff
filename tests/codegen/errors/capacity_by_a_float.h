GP_CALL(0x1, WAIT)
CUresult cuFoo(
        OUT_UP_TO(n) int *list,
        INOUT float *n);
