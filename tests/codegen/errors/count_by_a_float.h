GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN_N(n) const int *list,
        float n);
