GP_LOCAL()
CUresult cuFoo(int register);
