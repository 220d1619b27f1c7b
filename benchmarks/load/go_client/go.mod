module example.com/load

go 1.25.0

require example.com/outbox v0.0.0

require github.com/standard-webhooks/standard-webhooks/libraries v0.0.1 // indirect

replace example.com/outbox => ../../../clients/go
