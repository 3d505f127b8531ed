module substrate-compat/benchmarks/peers

go 1.21
