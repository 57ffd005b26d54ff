GP_LOCAL()
CUresult cuFoo(
        void x);
