GP_LOCAL(CHARGES_NOTHING, CAPTURE(refused))
CUresult cuFoo(
        IN_N(n) const CUstream *streams,
        unsigned int n);
