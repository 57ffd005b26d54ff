GP_LOCAL()
CUresult cuFoo(OUT(n) int *data, int n);
