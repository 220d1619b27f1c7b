mkdir client
go tool oapi-codegen -generate types,client -package client -o client/client.go ../openapi.json
go run .
