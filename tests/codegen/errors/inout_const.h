GP_CALL(0x1, WAIT)
CUresult cuFoo(
        INOUT const int *value);
