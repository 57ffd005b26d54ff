GP_LOCAL(CAPTURE(sometimes))
CUresult cuCtxSynchronize(void);
