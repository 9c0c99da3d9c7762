// The clients of Redis that the Redis protocol of headgate server is tested with are a module of their own,
// so that they never reach the users of Headgate.
module github.com/headgate/headgate/cmd/test/redisclients

go 1.26.0

require (
	github.com/headgate/headgate v0.1.0
	github.com/headgate/headgate/cmd v0.1.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/coreos/go-systemd/v22 v22.7.0 // indirect
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/headgate/headgate/internal/config v0.1.0 // indirect
	github.com/headgate/headgate/rule/jwt v0.1.0 // indirect
	github.com/pires/go-proxyproto v0.15.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/headgate/headgate => ../../..
	github.com/headgate/headgate/client => ../../../client
	github.com/headgate/headgate/cmd => ../../../cmd
	github.com/headgate/headgate/config => ../../../config
	github.com/headgate/headgate/guard/report/prom => ../../../guard/report/prom
	github.com/headgate/headgate/internal/config => ../../../internal/config
	github.com/headgate/headgate/internal/proto => ../../../internal/proto
	github.com/headgate/headgate/pace/etcd => ../../../pace/etcd
	github.com/headgate/headgate/rule/jwt => ../../../rule/jwt
	github.com/headgate/headgate/store/redis => ../../../store/redis
)
