GP_CALL(0x1, WAIT)
CUresult cuFoo(
        OUT OPT OPT int *value);
