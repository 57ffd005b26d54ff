GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN_N(n + 1) const int *list,
        int n);
