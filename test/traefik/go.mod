// The first build of Traefik takes minutes, so its test is a part of make soak.
module github.com/headgate/headgate/test/traefik

go 1.26.0

require github.com/headgate/headgate v0.0.0

replace github.com/headgate/headgate => ../..
