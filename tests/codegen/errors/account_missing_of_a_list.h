GP_LOCAL()
CUresult cuFoo(
        IN_N(n) const CUstream *streams,
        unsigned int n);
