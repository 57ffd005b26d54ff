GP_LOCAL()
CUresult cuInit(unsigned);
