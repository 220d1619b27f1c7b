openapi-generator-cli generate -i ../openapi.json -g go -o .
go run ./program
