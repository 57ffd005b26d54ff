GP_CALL(0x1, WAIT)
CUresult cuFoo(int attr, OUT_ATTRIBUTE(attr) void *value);
