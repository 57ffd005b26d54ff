GP_LOCAL()
CUresult cuFoo(
        int x,
        int y;

GP_LOCAL()
CUresult cuBar(int x);
