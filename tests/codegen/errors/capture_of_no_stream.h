GP_LOCAL(CAPTURE(refused))
CUresult cuCtxSynchronize(
        void);
