GP_LOCAL(CHARGES_NOTHING, CAPTURE(refused))
CUresult cuStreamCopyAttributes(
        CUstream dst,
        CUstream src);
