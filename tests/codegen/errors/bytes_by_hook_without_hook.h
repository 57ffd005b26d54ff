GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN_BYTES(BY_HOOK) const void *data);
