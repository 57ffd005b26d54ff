GP_KIND(foo, TYPES(int))
