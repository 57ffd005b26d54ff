GP_LOCAL()
CUresult cuFoo(
        IN_BYTES(size const void *data,
        size_t size);
