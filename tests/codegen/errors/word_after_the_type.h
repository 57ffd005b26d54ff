GP_CALL(0x1, WAIT)
CUresult cuFoo(
        OUT int NEW *value);
