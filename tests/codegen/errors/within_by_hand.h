GP_LOCAL()
CUresult cuCtxSetFlags(
        WITHIN(0, 7) unsigned int flags);
