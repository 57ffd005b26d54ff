GP_CALL(0x1, POST)
CUresult cuFoo(OUT int *value);
