GP_LOCAL()
CUresult cuInit(void