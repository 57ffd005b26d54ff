GP_LOCAL(CHARGES_NOTHING, CAPTURE(declined))
CUresult cuStreamCopyAttributes(
        CUstream dst,
        CUstream src);
