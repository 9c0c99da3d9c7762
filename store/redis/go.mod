module github.com/headgate/headgate/store/redis

go 1.25.0

require (
	github.com/headgate/headgate v0.1.0
	github.com/redis/rueidis v1.0.77
)

require golang.org/x/sys v0.47.0 // indirect
