module github.com/headgate/headgate/rule/jwt

go 1.25.0

require (
	github.com/go-jose/go-jose/v4 v4.1.8
	github.com/golang-jwt/jwt/v5 v5.2.2
	github.com/headgate/headgate v0.1.0
)
