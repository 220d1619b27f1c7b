module example.com/check-endpoint

go 1.22
