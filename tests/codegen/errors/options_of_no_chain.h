GP_CALL(0x1, WAIT)
CUresult cuFoo(unsigned int n, IN_OPTIONS(n, values) CUjit_option *keys, BY_HOOK void **values);
