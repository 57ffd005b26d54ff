GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN_STRING const int *text);
