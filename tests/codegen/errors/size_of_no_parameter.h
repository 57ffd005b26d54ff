GP_LOCAL()
CUresult cuFoo(IN_BYTES(n) const void *data, size_t m);
