GP_LOCAL()
CUresult cuInit(unsigned int Flags)

GP_LOCAL()
CUresult cuFoo(int x);
