GP_CALL(0x1, WAIT)
CUresult cuFoo(SPAN(size) int value, size_t size);
