module github.com/headgate/headgate/internal/config

go 1.25.0

require (
	github.com/fsnotify/fsnotify v1.7.0
	github.com/headgate/headgate v0.1.0
	github.com/headgate/headgate/rule/jwt v0.1.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	go.yaml.in/yaml/v4 v4.0.0
)

require (
	github.com/go-jose/go-jose/v4 v4.1.8 // indirect
	github.com/golang-jwt/jwt/v5 v5.2.2 // indirect
	golang.org/x/sys v0.5.0 // indirect
	golang.org/x/text v0.14.0 // indirect
)
