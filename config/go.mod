module github.com/headgate/headgate/config

go 1.26.0

require (
	github.com/headgate/headgate v0.1.0
	github.com/headgate/headgate/internal/config v0.1.0
	github.com/headgate/headgate/store/redis v0.1.0
	github.com/maxmind/mmdbwriter v1.2.0
	github.com/oschwald/maxminddb-golang/v2 v2.8.0
	github.com/redis/rueidis v1.0.77
	golang.org/x/net v0.57.0
)

require (
	github.com/fsnotify/fsnotify v1.7.0 // indirect
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/golang-jwt/jwt/v5 v5.2.2 // indirect
	github.com/headgate/headgate/rule/jwt v0.1.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	go4.org/netipx v0.0.0-20231129151722-fdeea329fbba // indirect
	golang.org/x/sys v0.48.0 // indirect
)
