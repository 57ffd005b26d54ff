GP_LOCAL()
CUresult cuFoo(IN char name[8]);
