GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN_N(n) OPT const unsigned int *list,
        size_t n);
