GP_CALL(0x1, WAIT)
CUresult cuFoo(unsigned int n, IN_OPTIONS(n) CUjit_option *keys);
