GP_CALL(0x1, WAIT)
CUresult cuFoo(OUT_UP_TO(n) int *nodes, size_t n);
