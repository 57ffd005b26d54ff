GP_LOCAL(SYNCHRONIZES(dptr))
CUresult cuCtxSynchronize(void);
