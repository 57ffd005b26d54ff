GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN_BYTES(n) OPT const void *bytes,
        size_t n);
