GP_LOCAL()
CUresult cuFoo(IN_BYTES const void *data);
