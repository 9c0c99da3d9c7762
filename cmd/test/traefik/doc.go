// Package traefik builds Traefik from its Go module and starts it with docs/examples/gateways/traefik-dynamic.yaml. Clients
// must see what they see behind the other gateways, and Traefik must send the subrequest that cmd/test/acceptance sends.
package traefik
