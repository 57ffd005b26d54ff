GP_CALL(0x1, WAIT)
CUresult cuFoo(SPAN(bytes) CUdeviceptr value, size_t size);
