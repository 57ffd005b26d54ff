GP_LOCAL(ALIAS(cuCtxAttach))
CUresult cuCtxSetCurrent(
        CUcontext ctx);
