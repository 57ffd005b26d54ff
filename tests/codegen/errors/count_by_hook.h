GP_CALL(0x1, WAIT)
CUresult cuFoo(IN_N(BY_HOOK) const int *values);
