GP_KIND(graph, TYPES(CUgraph), COST(64), DESTROY(cuGraphDestroy), LIFETIME(session))
GP_KIND(graph, TYPES(CUgraphExec), COST(64), DESTROY(cuGraphExecDestroy), LIFETIME(session))
