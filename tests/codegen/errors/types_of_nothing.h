GP_KIND(foo, TYPES())
